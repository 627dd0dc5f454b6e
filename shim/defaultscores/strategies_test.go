package defaultscores

import "testing"

// Counted by hand.
func TestStrategies(t *testing.T) {
	line := []Point{{10, 2}, {50, 10}, {90, 0}}
	for _, c := range []struct {
		name                            string
		weights, requested, allocatable []int64
		most, ratio                     int64
	}{
		// 1000 of 4000: 25 %; 1 of 4 GiB: 25 %. On the line 25 is 15/40 of the way from 20 to 100: 50.
		{"Even", []int64{1, 1}, []int64{1000, 1 << 30}, []int64{4000, 4 << 30}, 25, 50},
		// 100 % and 0 %, by 3 and 1: 75. The line says 0 and 20; what is 0 does not count: 20.
		{"Uneven", []int64{3, 1}, []int64{9000, 0}, []int64{4000, 4 << 30}, 75, 20},
		// 33 % (rounded down) by 2, 70 % by 1: 136 / 3 = 45. Line: 20 + 80 * 23 / 40 = 66, 100 - 100 * 20 / 40 = 50;
		// 182 / 3 = 60.67, rounded 61.
		{"Rounded", []int64{2, 1}, []int64{1, 7}, []int64{3, 10}, 45, 61},
		// A resource that the node lacks does not count.
		{"Absent", []int64{5, 1}, []int64{0, 1}, []int64{0, 2}, 50, 100},
		{"Nothing", []int64{1}, []int64{0}, []int64{0}, 0, 0},
	} {
		if got := MostAllocated(c.weights, c.requested, c.allocatable); got != c.most {
			t.Errorf("%s: MostAllocated %d, want %d", c.name, got, c.most)
		}
		if got := RequestedToCapacityRatio(line, c.weights, c.requested, c.allocatable); got != c.ratio {
			t.Errorf("%s: RequestedToCapacityRatio %d, want %d", c.name, got, c.ratio)
		}
	}
}
