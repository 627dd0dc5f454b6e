package scenario

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	kjson "sigs.k8s.io/json"

	"loadline.dev/shim/api/loadlinev1"
)

// trace is an entry of spec.traces: a file of pods, of which each shape becomes a workload of kind TRACE.
type trace struct {
	Name string `json:"name"`
	File string `json:"file"`
	// By what all times of the file are divided, so that months are simulated in days; 0: they are not.
	DivideTimesBy int64 `json:"divideTimesBy"`
	// How long a pod runs, in place of what the file says.
	RunSeconds *struct {
		Min int64 `json:"min"`
		Max int64 `json:"max"`
	} `json:"runSeconds"`
	Group    string `json:"group"`
	Priority int32  `json:"priority"`
}

// pod is a line of a trace. Its keys name the columns.
type pod struct{ created, deleted, cpu, memory, gpus int64 }

// shape is what pods of one workload have in common.
type shape struct{ cpu, memory, gpus int64 }

// columns of a trace; deletion_time and num_gpu may be missing.
const (
	createdColumn = "creation_time"
	deletedColumn = "deletion_time"
	cpuColumn     = "cpu_milli"
	memoryColumn  = "memory_mib"
	gpusColumn    = "num_gpu"
)

// takeTraces takes spec.traces out of a spec, which the message does not know, and returns their workloads.
func takeTraces(spec json.RawMessage, read func(string) ([]byte, error)) (json.RawMessage,
	[]*loadlinev1.SimulatedWorkload, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(spec, &fields); err != nil || fields["traces"] == nil {
		return spec, nil, nil // its fault is reported with its field
	}
	var traces []trace
	unknown, err := kjson.UnmarshalStrict(fields["traces"], &traces)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return nil, nil, fmt.Errorf("spec.traces: %w", err)
	}
	delete(fields, "traces")
	var workloads []*loadlinev1.SimulatedWorkload
	for i := range traces {
		of, err := traces[i].workloads(read)
		if err != nil {
			return nil, nil, fmt.Errorf("spec.traces[%d]: %w", i, err)
		}
		workloads = append(workloads, of...)
	}
	rest, err := json.Marshal(fields)
	return rest, workloads, err
}

func (t *trace) workloads(read func(string) ([]byte, error)) ([]*loadlinev1.SimulatedWorkload, error) {
	if t.Name == "" || t.File == "" {
		return nil, errors.New("name and file are required")
	}
	if t.DivideTimesBy < 0 {
		return nil, fmt.Errorf("divideTimesBy: %d is below 0", t.DivideTimesBy)
	}
	content, err := read(t.File)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	pods, err := readPods(content)
	if err != nil {
		return nil, fmt.Errorf("file: %s: %w", t.File, err)
	}
	slices.SortStableFunc(pods, func(a, b pod) int { return cmp.Compare(a.created, b.created) })
	byShape := map[shape]*loadlinev1.SimulatedWorkload{}
	var workloads []*loadlinev1.SimulatedWorkload
	for _, p := range pods {
		key := shape{p.cpu, p.memory, p.gpus}
		workload := byShape[key]
		if workload == nil {
			workload = &loadlinev1.SimulatedWorkload{Name: fmt.Sprintf("%s-%d", t.Name, len(workloads)),
				Kind: loadlinev1.SimulatedWorkload_TRACE, MilliCpu: p.cpu, MemoryMib: p.memory, Gpus: p.gpus,
				Group: t.Group, Priority: t.Priority}
			if t.RunSeconds != nil {
				workload.RunSeconds = &loadlinev1.SecondsRange{Min: t.RunSeconds.Min, Max: t.RunSeconds.Max}
			}
			byShape[key] = workload
			workloads = append(workloads, workload)
		}
		t.add(p, pods[0].created, workload)
	}
	return workloads, nil
}

// add adds the arrival of a pod; the first one of the trace arrives at once.
func (t *trace) add(p pod, first int64, workload *loadlinev1.SimulatedWorkload) {
	divisor := max(1, t.DivideTimesBy)
	at := (p.created - first) / divisor
	if n := len(workload.Arrivals); n > 0 && workload.Arrivals[n-1].AtSeconds == at {
		workload.Arrivals[n-1].Count++
	} else {
		workload.Arrivals = append(workload.Arrivals, &loadlinev1.SimulatedArrival{AtSeconds: at, Count: 1})
	}
	if t.RunSeconds != nil || p.deleted < p.created {
		return
	}
	runs := max(1, (p.deleted-p.created)/divisor)
	if workload.RunSeconds == nil {
		workload.RunSeconds = &loadlinev1.SecondsRange{Min: runs, Max: runs}
	}
	workload.RunSeconds.Min = min(workload.RunSeconds.Min, runs)
	workload.RunSeconds.Max = max(workload.RunSeconds.Max, runs)
}

// readPods reads lines of comma-separated values under a line of column names. Errors name line and column.
func readPods(content []byte) ([]pod, error) {
	lines := csv.NewReader(bytes.NewReader(content))
	header, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("has no line with the names of its columns: %w", err)
	}
	for _, name := range []string{createdColumn, cpuColumn, memoryColumn} {
		if !slices.Contains(header, name) {
			return nil, fmt.Errorf("has no column %s", name)
		}
	}
	var pods []pod
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		p := pod{deleted: -1}
		for name, value := range map[string]*int64{createdColumn: &p.created, deletedColumn: &p.deleted,
			cpuColumn: &p.cpu, memoryColumn: &p.memory, gpusColumn: &p.gpus} {
			column := slices.Index(header, name)
			if column < 0 || line[column] == "" && name != createdColumn {
				continue
			}
			if *value, err = strconv.ParseInt(line[column], 10, 64); err != nil || *value < 0 {
				number, _ := lines.FieldPos(column)
				return nil, fmt.Errorf("line %d: %s: %q is no whole number from 0 on", number, name, line[column])
			}
		}
		pods = append(pods, p)
	}
	if len(pods) == 0 {
		return nil, errors.New("has no pods")
	}
	return pods, nil
}
