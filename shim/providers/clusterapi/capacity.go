package clusterapi

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// statedCapacity returns what annotations say. The number of pods has a default.
func (o object) statedCapacity() (v1.ResourceList, error) {
	annotations := o.GetAnnotations()
	names := map[string]v1.ResourceName{"cpu": v1.ResourceCPU, "memory": v1.ResourceMemory,
		"ephemeral-disk": v1.ResourceEphemeralStorage, "maxPods": v1.ResourcePods}
	if kind := annotations[capacityPrefix+"gpu-type"]; kind != "" {
		if problems := validation.IsQualifiedName(kind); len(problems) > 0 {
			return nil, fmt.Errorf("%s: annotation %sgpu-type %q: is not the name of a resource: %s", o.id(), capacityPrefix,
				kind, problems[0])
		}
		names["gpu-count"] = v1.ResourceName(kind)
	}
	out := v1.ResourceList{v1.ResourcePods: *resource.NewQuantity(defaultPods, resource.DecimalSI)}
	for key, name := range names {
		text := annotations[capacityPrefix+key]
		if text == "" {
			continue
		}
		amount, err := resource.ParseQuantity(text)
		if err != nil || amount.Sign() < 0 {
			return nil, fmt.Errorf("%s: annotation %s %q: is not an amount", o.id(), capacityPrefix+key, text)
		}
		if !amount.IsZero() {
			out[name] = amount
		}
	}
	limits, _ := o.volumeLimits()
	for driver, limit := range limits {
		out[v1.ResourceName(volumeLimitPrefix+driver)] = *resource.NewQuantity(limit, resource.DecimalSI)
	}
	return out, nil
}

// volumeLimitPrefix begins the amounts by which a template states how many volumes of a CSI driver its nodes take, as
// kubelets stated it before they wrote CSINodes. The name of the driver follows.
const volumeLimitPrefix = v1.ResourceAttachableVolumesPrefix + "csi-"

// volumeLimits returns how many volumes of each CSI driver a new node takes, and the parts of the annotation that state
// no number.
func (o object) volumeLimits() (limits map[string]int64, wrong []string) {
	limits = map[string]int64{}
	for part := range strings.SplitSeq(o.GetAnnotations()[capacityPrefix+"csi-driver"], ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		driver, text, _ := strings.Cut(part, "=")
		driver = strings.TrimSpace(driver)
		limit, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil || limit < 0 || len(validation.IsDNS1123Subdomain(strings.ToLower(driver))) > 0 {
			wrong = append(wrong, part)
			continue
		}
		limits[driver] = limit
	}
	return limits, wrong
}

// leastMemory is less than any node has: an amount below it lacks its unit.
const leastMemory = 1 << 20

// doubtsOfCapacity returns what annotations say that can hardly be meant, or that nothing here follows: the engine
// knows no devices of ResourceSlices.
func (o object) doubtsOfCapacity() (doubts []string) {
	annotations := o.GetAnnotations()
	for _, key := range []string{"memory", "ephemeral-disk"} {
		text := annotations[capacityPrefix+key]
		if amount, err := resource.ParseQuantity(text); err == nil && amount.Sign() > 0 && amount.Value() < leastMemory {
			doubts = append(doubts, fmt.Sprintf("%s: annotation %s%s %q counts as so many bytes: does it lack a unit, such as "+
				"Gi?", o.id(), capacityPrefix, key, text))
		}
	}
	if count := annotations[capacityPrefix+"gpu-count"]; count != "" && count != "0" &&
		annotations[capacityPrefix+"gpu-type"] == "" {
		doubts = append(doubts, fmt.Sprintf("%s: annotation %sgpu-count %q counts as not stated: without %sgpu-type, such "+
			"as nvidia.com/gpu, new nodes have no GPUs", o.id(), capacityPrefix, count, capacityPrefix))
	}
	_, wrong := o.volumeLimits()
	for _, part := range wrong {
		doubts = append(doubts, fmt.Sprintf("%s: annotation %scsi-driver: %q counts as not stated: it must be "+
			"DRIVER=VOLUMES, such as ebs.csi.aws.com=25", o.id(), capacityPrefix, part))
	}
	if text := annotations[capacityPrefix+"dra-driver"]; text != "" {
		doubts = append(doubts, fmt.Sprintf("%s: annotation %sdra-driver %q is not read: pods with resource claims get no "+
			"new nodes", o.id(), capacityPrefix, text))
	}
	for part := range strings.SplitSeq(annotations[capacityPrefix+"labels"], ",") {
		if part = strings.TrimSpace(part); part != "" && !strings.Contains(part, "=") {
			doubts = append(doubts, fmt.Sprintf("%s: annotation %slabels: %q counts as not stated: it must be KEY=VALUE",
				o.id(), capacityPrefix, part))
		}
	}
	return doubts
}

// wrongCapacity says which annotations describe a node that cannot exist; nil: none does.
func (o object) wrongCapacity() error {
	_, wrongAmount := o.statedCapacity()
	_, wrongTaint := o.taints()
	_, wrongLabel := o.labels(object{})
	return cmp.Or(wrongAmount, wrongTaint, wrongLabel)
}
