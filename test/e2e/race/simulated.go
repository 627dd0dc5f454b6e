package race

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/scenario"
	"loadline.dev/test/e2e/harness"
)

// ErrNotSimulated is what the simulator has no words for.
var ErrNotSimulated = errors.New("the simulator knows no pods that keep away from spot machines")

// SimulatedScenario is the scenario as the simulator reads it: the same types, load and start times. Budgets are those
// of the peaks.
func (s *Scenario) SimulatedScenario(settings *loadlinev1.SimulatedSettings) (*loadlinev1.Scenario, error) {
	out := &loadlinev1.Scenario{Settings: settings, LoadStepSeconds: seconds(loadStep),
		DurationSeconds: seconds(s.Duration)}
	// A node is ready when it is added, and gone when it is removed.
	start := &loadlinev1.SecondsRange{Min: seconds(s.NodeStart), Max: seconds(s.NodeStart)}
	for i := range s.Types {
		t := &s.Types[i]
		out.Groups = append(out.Groups, &loadlinev1.SimulatedGroup{Name: t.Group(), Max: mostNodes,
			MilliCpu: t.MilliCPU, MemoryMib: t.MemoryMiB, Pods: t.Pods, Gpus: t.GPUs, UsdPerHour: t.USDPerHour,
			Spot: t.Spot, StartSeconds: start, ReadySeconds: new(int64), StopSeconds: new(int64)})
	}
	for i := range s.Services {
		w := s.simulatedService(&s.Services[i])
		if w == nil {
			return nil, ErrNotSimulated
		}
		out.Workloads = append(out.Workloads, w)
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		w := workload(j.Name, &j.Request)
		if w == nil {
			return nil, ErrNotSimulated
		}
		w.Kind = loadlinev1.SimulatedWorkload_TRACE
		w.Arrivals = []*loadlinev1.SimulatedArrival{{AtSeconds: seconds(j.At), Count: int64(j.Pods)}}
		w.RunSeconds = &loadlinev1.SecondsRange{Min: seconds(j.Run), Max: seconds(j.Run)}
		out.Workloads = append(out.Workloads, w)
	}
	return out, nil
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// workload is what services and jobs have in common: their pods run as soon as they have a node, and end at once.
func workload(name string, r *Request) *loadlinev1.SimulatedWorkload {
	if r.OnDemand {
		return nil
	}
	return &loadlinev1.SimulatedWorkload{Name: name, MilliCpu: r.MilliCPU, MemoryMib: r.MemoryMiB, Gpus: r.GPUs,
		LimitMemoryMib: r.LimitMemoryMiB, GraceSeconds: new(int64), PodStartSeconds: &loadlinev1.SecondsRange{}}
}

// simulatedService has its steps as bursts, one after the other.
func (s *Scenario) simulatedService(service *Service) *loadlinev1.SimulatedWorkload {
	w := workload(service.Name, &service.Request)
	if w == nil {
		return nil
	}
	w.Kind, w.Apart = loadlinev1.SimulatedWorkload_DEPLOYMENT, service.Apart
	w.RolloutEverySeconds = seconds(service.RolloutEvery)
	peak := 0
	for i, step := range service.Steps {
		end := s.Duration + loadStep
		if i+1 < len(service.Steps) {
			end = service.Steps[i+1].At
		}
		if step.Replicas > 0 {
			w.Bursts = append(w.Bursts, &loadlinev1.SimulatedBurst{AtSeconds: seconds(step.At),
				ForSeconds: seconds(end - step.At), Replicas: int64(step.Replicas)})
		}
		peak = max(peak, step.Replicas)
	}
	if percent := service.MaxUnavailablePercent; percent > 0 {
		w.MaxUnavailable = new(int64)
		*w.MaxUnavailable = int64((peak*percent + 99) / 100) // rounded up, as budgets are
	}
	return w
}

// ScenarioFile is the scenario as a file for `loadline simulate --scenario`.
func (s *Scenario) ScenarioFile(settings *loadlinev1.SimulatedSettings) ([]byte, error) {
	simulated, err := s.SimulatedScenario(settings)
	if err != nil {
		return nil, err
	}
	spec, err := protojson.Marshal(simulated)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(map[string]any{"apiVersion": scenario.APIVersion, "kind": scenario.Kind,
		"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", s.Name, s.Seed)}, "spec": json.RawMessage(spec)})
}

// Simulate lets the simulator play the scenario with Loadline, by `loadline simulate`, which reads the file that it
// leaves in the folder.
func Simulate(ctx context.Context, s *Scenario, who *Contestant, folder string) (*Run, error) {
	file := filepath.Join(folder, fmt.Sprintf("%s-%d-%s.yaml", s.Name, s.Seed, who.Name))
	content, err := s.ScenarioFile(who.Simulated)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(file, content, 0o644)); err != nil {
		return nil, err
	}
	program, err := harness.LoadlineCLI.Path()
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, program, "simulate", "--scenario="+file, fmt.Sprintf("--seed=%d", s.Seed),
		"-o", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("loadline simulate --scenario=%s: %w", file, err)
	}
	run := &Run{Contestant: who.Name, Simulated: true, Settings: filepath.Base(file)}
	if err := json.Unmarshal(out, &run.Measured); err != nil {
		return nil, err
	}
	run.USDWithStarts, run.USD = run.USD, 0 // it counts from the order of a machine on
	return run, nil
}
