"""What hosts give every protocol: announced types that are compared, history, deadlines and fences.

`served.py` puts these beside a machine, without a clock or a socket, so that both hosts run the same code. Start
there.
"""
