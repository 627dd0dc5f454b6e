package profile

// Merge returns profiles of which each hour has the larger amount of both, in the order of the workloads. Both lists
// are in this order. Thus the samples of an earlier process still count, beside new ones.
func Merge(a, b []Profile) []Profile {
	out := make([]Profile, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].Workload.Compare(b[0].Workload); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, mergeOne(a[0], &b[0]))
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func mergeOne(p Profile, other *Profile) Profile {
	for of := range p.Day {
		for hour := range p.Day[of] {
			p.Day[of][hour] = max(p.Day[of][hour], other.Day[of][hour]) // Unknown is less than all amounts
		}
		if p.Limits[of] == 0 || other.Last > p.Last && other.Limits[of] > 0 {
			p.Limits[of] = other.Limits[of]
		}
	}
	p.Samples = min(p.Samples+other.Samples, mostAmount)
	p.Days = max(p.Days, other.Days)
	p.First, p.Last = min(p.First, other.First), max(p.Last, other.Last)
	return p
}
