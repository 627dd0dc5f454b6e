package policy

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
)

func TestExpectedUse(t *testing.T) {
	p, err := Parse([]byte("expectedUse: {mode: On, cpuMarginPercent: 120, neighborHours: 1, minDays: 5, maxAge: 36h, " +
		"floor: RequestFloor}"))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(p.Proto().GetExpectedUse())), " ")
	want := `mode:ON cpu_margin_percent:120 neighbor_hours:1 min_days:5 max_age_s:129600 floor:REQUEST_FLOOR`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if again := FromProto(p.Proto()).ExpectedUse; *again != *p.ExpectedUse {
		t.Errorf("read back as %+v", again)
	}
	line := Line{MaxExpectedOverAllocatable: map[string]Ratio{"memory": "0.8"}, MaxLimitsOverAllocatable: map[string]Ratio{"cpu": "3"}}
	out := line.Proto(p.Proto())
	if out.GetExpectedUse().GetMinDays() != 5 || len(out.GetResources()) != 2 ||
		out.GetResources()[1].GetMaxExpectedOverAllocatable() != "0.8" || out.GetResources()[1].GetMaxLimitsOverAllocatable() != "" {
		t.Errorf("the line is %v", out)
	}
	if err := line.CheckCounting(p); err != nil {
		t.Error(err)
	}
	if err := line.CheckCounting(Policy{}); err == nil || !strings.Contains(err.Error(), "takes expectedUse with mode On") {
		t.Error(err)
	}
	if (Policy{}).Proto().ExpectedUse != nil || (&ExpectedUse{Mode: "Off"}).Proto() != nil {
		t.Error("expected use is on")
	}
}

func TestExpectedUseRefuses(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"mode: Maybe", `expectedUse.mode: Unsupported value: "Maybe": supported values: "Off", "On"`},
		{"cpuMarginPercent: 99", "expectedUse.cpuMarginPercent: Invalid value: 99: must be 100 to 1000"},
		{"memoryMarginPercent: 1001", "must be 100 to 1000"},
		{"neighborHours: 12", "must be 0 to 11"},
		{"minDays: 366", "must be 1 to 365"},
		{"maxAge: 59s", "must be 1m or more"},
		{"maxAge: -1h", "must be 1m or more"},
		{"floor: Limit", `supported values: "NoFloor", "RequestFloor"`},
		{"margin: 1", "unknown field"},
	} {
		if _, err := Parse([]byte("expectedUse: {" + c.text + "}")); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.text, err, c.says)
		}
	}
}
