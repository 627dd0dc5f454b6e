package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/testing/protocmp"

	"loadline.dev/shim/api/loadlinev1"
)

// Each question has the windows that hold, or come next, and what stays the same has none.
func TestMovesBeginInWindows(t *testing.T) {
	p := plannerOf(t, func(flags *pflag.FlagSet) {
		for _, window := range []string{"0 22 * * 1-5 6h", `"0 9,15 * * * 30m Europe/Berlin"`} {
			if err := flags.Set("replacement-windows", window); err != nil {
				t.Fatal(err)
			}
		}
	})
	at := func(hour, minute int) time.Time {
		return time.Date(2026, time.November, 26, hour, minute, 0, 0, time.UTC)
	}
	want := &loadlinev1.TimeWindows{Windows: []*loadlinev1.TimeWindow{
		{FromS: at(22, 0).Unix(), UntilS: at(28, 0).Unix()}, {FromS: at(14, 0).Unix(), UntilS: at(14, 30).Unix()}}}
	for _, now := range []time.Time{at(12, 0), at(14, 29)} {
		if diff := cmp.Diff(want, p.consolidation(now).GetWindows(), protocmp.Transform()); diff != "" {
			t.Errorf("at %v: %s", now, diff)
		}
	}
	if p.Settings.GetConsolidation().GetWindows() != nil {
		t.Error("the settings have changed")
	}
	always := plannerOf(t, func(*pflag.FlagSet) {})
	if got := always.consolidation(at(12, 0)).GetWindows(); got != nil {
		t.Errorf("without windows: %v", got)
	}
}
