#!/usr/bin/env python3
"""The API as a client in another language sees it: the example of docs/api.md, large clusters, and hostile ones.

Makes a virtual environment with grpcio in build/api-venv. Where pip reaches no index the test ends with code 77, which
ctest counts as skipped. LOADLINED is the program.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build/api-venv"
SKIPPED = 77


def prepare():
    """Starts this program again in an environment with grpcio; returns in that one, with the messages generated."""
    python = VENV / "bin/python"
    if pathlib.Path(sys.prefix).resolve() != VENV.resolve():
        ready = VENV / "ready"
        if not ready.exists():
            try:
                subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
                subprocess.run([python, "-m", "pip", "install", "-q", "--retries=1", "--timeout=20",
                                "grpcio", "grpcio-tools"], check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"skipped: grpcio cannot be installed: {error}")
                sys.exit(SKIPPED)
            ready.touch()
        os.execv(python, [python, __file__, *sys.argv[1:]])
    out = tempfile.mkdtemp()
    files = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto/loadline").rglob("*.proto"))
    subprocess.run([python, "-m", "grpc_tools.protoc", "-I", ROOT / "proto", f"--python_out={out}",
                    f"--grpc_python_out={out}", *files], check=True)
    sys.path.insert(0, out)
    return out


GENERATED = prepare()

import grpc  # noqa: E402
from loadline.k8s.v1 import core_pb2 as k8s  # noqa: E402
from loadline.v1 import cluster_state_pb2 as state  # noqa: E402
from loadline.v1 import cluster_state_pb2_grpc as state_grpc  # noqa: E402
from loadline.v1 import objects_pb2 as objects  # noqa: E402
from loadline.v1 import set_cluster_pb2 as cluster  # noqa: E402


def as_json(value):
    return json.dumps(value).encode()


def node(name, cpu="8", **metadata):
    return {"kind": "Node", "metadata": {"name": name, **metadata},
            "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": 110}}}


def pod(name, node_name, cpu="1"):
    return {"kind": "Pod", "metadata": {"namespace": "default", "name": name},
            "spec": {"nodeName": node_name,
                     "containers": [{"name": "app", "image": "x", "resources": {"limits": {"cpu": cpu}}}]}}


def request(nodes=(), pods=(), **more):
    encoded = [[o if isinstance(o, bytes) else as_json(o) for o in list_] for list_ in (nodes, pods)]
    return cluster.SetClusterRequest(view="test", nodes=encoded[0], pods=encoded[1], last=True, **more)


class ApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.socket = cls.folder.name + "/s"
        program = os.environ.get("LOADLINED", str(ROOT / "build/bin/loadlined"))
        cls.daemon = subprocess.Popen([program, "--socket", cls.socket, "--request-seconds=3"],
                                      stderr=subprocess.DEVNULL)
        cls.channel = grpc.insecure_channel("unix:" + cls.socket)
        grpc.channel_ready_future(cls.channel).result(timeout=60)
        cls.state = state_grpc.ClusterStateStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.daemon.terminate()
        cls.daemon.wait()
        cls.folder.cleanup()

    def set(self, *parts):
        return self.state.SetCluster(iter(parts), timeout=60)

    def described(self):
        answer = self.state.Describe(state.DescribeRequest(view="test", include_pods=True), timeout=60)
        return {n.name: sorted(p.name for p in n.pods) for n in answer.nodes}

    def refused(self, *parts):
        """Returns code and text of a call that must fail, and change nothing."""
        return self.refused_stream(iter(parts))

    def refused_stream(self, parts):
        self.set(request([node("a")], [pod("p", "a")]))
        with self.assertRaises(grpc.RpcError) as caught:
            self.state.SetCluster(parts, timeout=60)
        self.assertEqual(self.described(), {"a": ["p"]})
        if "larger than max" not in caught.exception.details():  # gRPC's own error
            info = dict(caught.exception.trailing_metadata())["grpc-status-details-bin"]
            self.assertIn(b"\x12\x0cloadline.dev", info)
        return caught.exception.code().name, caught.exception.details()

    def test_example(self):
        done = subprocess.run([sys.executable, ROOT / "docs/api/score_pod.py", self.socket], check=True, text=True,
                              stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": GENERATED})
        # By hand: the limits of two burst pods are 16 CPUs of 8 on a; of two calm pods and the new one 6 of 8 on b; of
        # the new one alone 2 of 8 on c.
        self.assertEqual(done.stdout, "a 0\nb 72\nc 100\n")
        self.assertIn(done.stdout.strip(), (ROOT / "docs/api.md").read_text(encoding="utf-8"))

    def test_five_thousand_nodes_at_once(self):
        labels = {f"label.example.com/key-{i}": f"value-{i}" for i in range(25)}
        nodes = [as_json(node(f"node-{i}", labels=labels)) for i in range(5000)]
        begin = time.monotonic()
        answer = self.set(*(cluster.SetClusterRequest(nodes=nodes[i:i + 500]) for i in range(0, 5000, 500)),
                          cluster.SetClusterRequest(view="test", last=True))
        took = time.monotonic() - begin
        print(f"{sum(map(len, nodes))} bytes in {took:.2f} s", file=sys.stderr)
        self.assertEqual((len(set(answer.slots)), answer.changed_nodes, answer.left_out_total), (5000, 5000, 0))

    def test_only_what_differs_is_applied(self):
        first = self.set(request([node("a"), node("b"), node("c")], [pod("p", "a"), pod("q", "b")]))
        again = self.set(request([node("c"), node("b"), node("a")], [pod("q", "b"), pod("p", "a")]))
        self.assertEqual((again.changed_nodes, again.removed), (0, 0))
        self.assertEqual(list(again.slots), list(reversed(first.slots)))
        moved = self.set(request([node("a"), node("b"), node("d")], [pod("p", "b"), pod("q", "b")]))
        self.assertEqual((moved.changed_nodes, moved.removed), (3, 1))
        self.assertEqual((moved.epoch, moved.revision), (again.epoch, again.revision + 1))
        self.assertEqual(self.described(), {"a": [], "b": ["p", "q"], "d": []})
        # Shapes and slots that are free again hold something else now.
        for i in range(5):
            self.set(request([node("a"), node(f"n{i}", cpu=str(i + 1))], [pod("p", "a", cpu=str(i + 1))]))
            self.assertEqual(self.described(), {"a": ["p"], f"n{i}": []})

    def test_json_and_both_forms_of_protobuf_are_the_same(self):
        message = k8s.Node()
        message.metadata.name = "a"
        for key, value in (("cpu", "8"), ("memory", "16Gi"), ("pods", "110")):
            entry = message.status.allocatable.add(key=key)
            entry.value.string = value
        plain = message.SerializeToString()
        unknown = b"\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + bytes([len(plain)]) + plain
        prints = set()
        for form in (as_json(node("a")), plain, b"k8s\x00" + unknown):
            self.set(request([form]))
            answer = self.state.Describe(state.DescribeRequest(view="test"), timeout=10)
            prints.add((answer.views[0].fingerprint, answer.nodes[0].fingerprint))
        self.assertEqual(len(prints), 1)

    def test_an_empty_cluster_is_a_cluster(self):
        self.set(request([node("a")], [pod("p", "a")]))
        self.assertEqual(self.set(request()).removed, 1)
        self.assertEqual(self.described(), {})

    def test_pods_without_a_place_are_counted(self):
        answer = self.set(request([node("a")], [pod("p", "a"), pod("q", ""), pod("r", "gone")]))
        self.assertEqual((answer.pods_without_node, answer.pods_of_unknown_nodes), (1, 1))

    def test_wrong_objects_are_named_and_nothing_is_lost(self):
        large = as_json(node("b", x="y" * (2 << 20)))
        wrong = node("a")
        wrong["spec"] = {"taints": "none"}
        wrong_pod = pod("p", "a")
        wrong_pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": [1]}
        for parts, text in (
                ([request([node("b"), node("b")])], 'nodes[1]: metadata.name: "b" is also that of nodes[0]'),
                ([request([node("b"), {"kind": "Node"}])], "nodes[1]: metadata.name: is missing"),
                ([request([wrong])], 'nodes[0]: spec.taints: is a text, not a list, in Node "a"'),
                ([request([node("a")], [wrong_pod])], "pods[0]: spec.containers[0].resources.limits[\"cpu\"]: "
                                                      'is a list, not an amount, in Pod "default/p"'),
                ([request([pod("p", "a")])], 'nodes[0]: kind: is "Pod", not "Node", in Node "default/p"'),
                ([request([b"[]"])], "nodes[0]: is a list, not an object"),
                ([request([b'{"metadata":'])], "nodes[0]: is no JSON: byte 13 cannot be read"),
                ([request([b"\xff\xff"])], "nodes[0]: is not a k8s.io.api.core.v1.Node: truncated or damaged, nested "
                                           "too deeply, or text that is not UTF-8"),
                ([request([large])], f'nodes[0]: "b" has {len(large)} bytes, at most 1572864 are allowed'),
                ([request([node("a")], [pod("p", "a"), pod("p", "a")])],
                 'pods[1]: metadata.name: "default/p" is also that of pods[0]'),
                ([request(objects=[objects.ClusterObject(kind=objects.NAMESPACE, object=b"{}")])],
                 "objects[0]: has an empty metadata.name"),
                ([cluster.SetClusterRequest(view="test", nodes=[as_json(node("b"))])],
                 "last: is not set: the call broke off"),
                ([cluster.SetClusterRequest(view="A b", last=True)], 'view: "A b" is not the name of a view'),
                ([], "the call has no request")):
            code, details = self.refused(*parts)
            self.assertEqual(code, "INVALID_ARGUMENT", details)
            self.assertTrue(details.startswith(text), f"got {details!r}, want {text!r}")

    def test_a_hundred_megabytes_are_refused(self):
        part = cluster.SetClusterRequest(nodes=[b" " * (1 << 20)] * 3)
        code, details = self.refused(*([part] * 34))
        self.assertEqual(code, "RESOURCE_EXHAUSTED", details)
        self.assertIn("bytes, which is the limit", details)
        code, details = self.refused(cluster.SetClusterRequest(view="test", nodes=[b"{" * (9 << 20)], last=True))
        self.assertEqual(code, "RESOURCE_EXHAUSTED", details)

    def test_a_silent_client_is_sent_away(self):
        silence = threading.Event()
        self.addCleanup(silence.set)

        def broken_off():
            yield cluster.SetClusterRequest(view="test", nodes=[as_json(node("b"))])
            silence.wait()

        def slow():
            for _ in range(4):
                time.sleep(1)  # shorter than the limit, all together longer
                yield cluster.SetClusterRequest()
            yield request([node("c")])

        for parts in (broken_off(), iter(silence.wait, True)):
            code, details = self.refused_stream(parts)
            self.assertEqual(code, "DEADLINE_EXCEEDED")
            self.assertEqual(details,
                             "the client sent nothing for 3 s, and its request is not complete; nothing has changed")
        self.state.SetCluster(slow(), timeout=60)
        self.assertEqual(self.described(), {"c": []})


if __name__ == "__main__":
    unittest.main()
