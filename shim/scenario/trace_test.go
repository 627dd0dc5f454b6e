package scenario

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

const openb = `name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time
a,1000,2048,0,0,1000,5000
b,4000,8192,1,500,1100,1900
c,1000,2048,0,0,1205,3205
d,1000,2048,0,0,1209,2209
`

func reads(content string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if name != "pods.csv" {
			return nil, errors.New(name + " is not there")
		}
		return []byte(content), nil
	}
}

func TestEachShapeOfATraceIsAWorkload(t *testing.T) {
	_, scenario, err := ParseWith([]byte(head+
		"spec: {workloads: [{name: web}], traces: [{name: t, file: pods.csv, divideTimesBy: 10, group: g}]}\n"),
		reads(openb))
	if err != nil {
		t.Fatal(err)
	}
	// By hand: times from the first pod on, divided by ten; c and d come in the same second.
	want := []*loadlinev1.SimulatedWorkload{
		{Name: "web"},
		{Name: "t-0", Kind: loadlinev1.SimulatedWorkload_TRACE, MilliCpu: 1000, MemoryMib: 2048, Group: "g",
			RunSeconds: &loadlinev1.SecondsRange{Min: 100, Max: 400},
			Arrivals:   []*loadlinev1.SimulatedArrival{{AtSeconds: 0, Count: 1}, {AtSeconds: 20, Count: 2}}},
		{Name: "t-1", Kind: loadlinev1.SimulatedWorkload_TRACE, MilliCpu: 4000, MemoryMib: 8192, Gpus: 1, Group: "g",
			RunSeconds: &loadlinev1.SecondsRange{Min: 80, Max: 80},
			Arrivals:   []*loadlinev1.SimulatedArrival{{AtSeconds: 10, Count: 1}}},
	}
	if len(scenario.GetWorkloads()) != len(want) {
		t.Fatalf("%d workloads", len(scenario.GetWorkloads()))
	}
	for i, workload := range scenario.GetWorkloads() {
		if !proto.Equal(workload, want[i]) {
			t.Errorf("workload %d: %v, want %v", i, workload, want[i])
		}
	}
}

func TestTracesNameWhatIsWrong(t *testing.T) {
	for _, row := range []struct{ entry, content, want string }{
		{"{name: t}", openb, "spec.traces[0]: name and file"},
		{"{name: t, file: other.csv}", openb, "other.csv is not there"},
		{"{name: t, file: pods.csv, speed: 2}", openb, "speed"},
		{"{name: t, file: pods.csv, divideTimesBy: -1}", openb, "divideTimesBy"},
		{"{name: t, file: pods.csv}", "", "names of its columns"},
		{"{name: t, file: pods.csv}", "cpu_milli,memory_mib\n", "creation_time"},
		{"{name: t, file: pods.csv}", "creation_time,cpu_milli,memory_mib\n", "no pods"},
		{"{name: t, file: pods.csv}", "creation_time,cpu_milli,memory_mib\n1,x,1\n", `line 2: cpu_milli: "x"`},
		{"{name: t, file: pods.csv}", "creation_time,cpu_milli,memory_mib\n1,1,-1\n", `memory_mib: "-1"`},
	} {
		_, _, err := ParseWith([]byte(head+"spec: {traces: ["+row.entry+"]}\n"), reads(row.content))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v does not name %q", row.entry, err, row.want)
		}
	}
}
