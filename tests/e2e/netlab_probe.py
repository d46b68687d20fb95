"""What a test measures inside a lab, as a host sees it.

netlab_probe.py round_trip COUNT   echoes COUNT datagrams from site0 at site1; prints the seconds until the first
                                   came back and how many did
netlab_probe.py transfer BYTES     sends BYTES over TCP from site0 to site1; prints the seconds it took
"""
import socket
import subprocess
import sys
import time

ADDRESS = ("10.77.1.1", 5000)


def serve_echo():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(ADDRESS)
        print("ready", flush=True)
        while True:
            data, peer = server.recvfrom(2048)
            server.sendto(data, peer)


def serve_transfer():
    with socket.create_server(ADDRESS) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        with connection:
            received = 0
            while data := connection.recv(1 << 16):
                received += len(data)
            connection.sendall(str(received).encode())


def round_trip(count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(ADDRESS)
        client.settimeout(2.0)  # of silence: the rest is lost
        started = time.monotonic()
        for number in range(count):
            client.send(number.to_bytes(4, "little"))
        first, answered = float("inf"), 0
        try:
            while answered < count:
                client.recv(2048)
                first = min(first, time.monotonic() - started)
                answered += 1
        except TimeoutError:
            pass
    print(first, answered)


def transfer(count):
    with socket.create_connection(ADDRESS) as client:
        started = time.monotonic()
        client.sendall(bytes(count))
        client.shutdown(socket.SHUT_WR)
        assert int(client.recv(64)) == count
        print(time.monotonic() - started)


def on_host(host, mode, *arguments, **options):
    command = ["ip", "netns", "exec", host, sys.executable, __file__, mode, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def main():
    mode, argument = sys.argv[1:3] if len(sys.argv) > 2 else (sys.argv[1], None)
    inside = {"serve_round_trip": serve_echo, "serve_transfer": serve_transfer}
    if mode in inside:
        return inside[mode]()
    if mode == "measure_round_trip":
        return round_trip(int(argument))
    if mode == "measure_transfer":
        return transfer(int(argument))
    server = on_host("site1", "serve_" + mode)
    server.stdout.readline()  # it listens
    client = on_host("site0", "measure_" + mode, argument)
    print(client.communicate()[0], end="")
    server.kill()
    return client.returncode


if __name__ == "__main__":
    sys.exit(main())
