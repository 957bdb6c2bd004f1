"""Shuts the connection down, in each direction, and goes on living."""
import time

send(reply())
read()
os.closerange(RECEIVES, SENDS + 1)
time.sleep(3600)
