"""Scores a pod on three nodes: score_pod.py SOCKET, with the modules that protoc wrote from proto/ in PYTHONPATH."""
import json
import sys

import grpc
from loadline.v1 import cluster_state_pb2 as state, cluster_state_pb2_grpc as state_grpc
from loadline.v1 import scheduler_extender_pb2_grpc as extender_grpc, score_pb2 as score, set_cluster_pb2 as cluster


def node(name, cpu, memory):
    return {"kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": 110}}}


def pod(name, node_name, requests, limits):
    container = {"name": "app", "resources": {"requests": requests, "limits": limits}}
    return {"kind": "Pod", "metadata": {"namespace": "default", "name": name},
            "spec": {"nodeName": node_name, "containers": [container]}}


nodes = [node("a", "8", "16Gi"), node("b", "8", "16Gi"), node("c", "8", "16Gi")]
pods = [pod(f"burst-{i}", "a", {"cpu": "2"}, {"cpu": "8", "memory": "6Gi"}) for i in range(2)]
pods += [pod(f"calm-{i}", "b", {"cpu": "2"}, {"cpu": "2", "memory": "2Gi"}) for i in range(2)]
incoming = pod("new", "", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"})

channel = grpc.insecure_channel("unix:" + sys.argv[1])
parts = [cluster.SetClusterRequest(nodes=[json.dumps(n).encode()]) for n in nodes]
parts += [cluster.SetClusterRequest(pods=[json.dumps(p).encode()]) for p in pods]
parts += [cluster.SetClusterRequest(view="example", last=True)]
slots = state_grpc.ClusterStateStub(channel).SetCluster(iter(parts), timeout=10).slots
answer = extender_grpc.SchedulerExtenderStub(channel).Score(score.ScoreRequest(
    changes=state.Changes(view="example"), pod=json.dumps(incoming).encode(),
    policy=score.ScorePolicy(preset=score.ScorePolicy.STRICT)), timeout=10)
names = dict(zip(slots, (n["metadata"]["name"] for n in nodes)))
for slot, points in zip(answer.slots, answer.scores):
    print(names[slot], points)
