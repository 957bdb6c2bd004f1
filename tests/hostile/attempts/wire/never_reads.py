"""Never reads what it is sent."""
import time

send(reply())
time.sleep(3600)
