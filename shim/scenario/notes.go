package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
)

// share is a number, or a percentage of all, rounded up as budgets are.
func share(of intstr.IntOrString, all int64) int64 {
	count, err := intstr.GetScaledValueFromIntOrPercent(&of, int(all), true)
	if err != nil {
		return 0
	}
	return max(0, int64(count))
}

// notes say what is not as in the cluster.
func (d *deriver) notes() (notes []string) {
	notes = append(notes, fmt.Sprintf("Node groups are derived from the nodes; each may become empty, and grow to "+
		"%d times its nodes, and at least to %d.", growth, leastGrowth))
	if load := d.cluster.Load; load.DailyPercent == 0 && load.WeekendPercent == 0 {
		notes = append(notes, "Deployments have as many pods as now at all hours: a dump does not tell their curves.")
	}
	if len(d.unpriced) > 0 {
		slices.Sort(d.unpriced)
		notes = append(notes, "No price is known of "+strings.Join(d.unpriced, ", ")+": these nodes cost nothing here.")
	}
	return append(notes, "Volumes, affinity, spread constraints and zones play no part.")
}

// number is a whole number as protobuf writes it as JSON, in quotes; names stay in theirs.
var number = regexp.MustCompile(`^([ -]*(?:[a-fh-mo-z]|n[b-z]|g[a-qs-z])\w*: )"(-?\d+)"`)

// Document writes a scenario as a file of kind Scenario.
func Document(name string, scenario *loadlinev1.Scenario) ([]byte, error) {
	spec, err := protojson.Marshal(scenario)
	if err != nil {
		return nil, err
	}
	body, err := yaml.JSONToYAML(spec)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: %s\nkind: %s\nmetadata: {name: %q}\nspec:\n", APIVersion, Kind, name)
	for line := range strings.Lines(string(body)) {
		out.WriteString("  " + number.ReplaceAllString(line, "$1$2"))
	}
	return []byte(out.String()), nil
}
