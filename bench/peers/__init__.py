"""What a submission costs, here and with three other graders. Run: python -m bench.peers"""
