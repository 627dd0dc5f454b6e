package race

import "math"

// bound tells what nodes for some pods cost at least: no packing of them costs less, since it buys parts of nodes. It
// is a linear program over cpu, memory and GPUs, and again cpu and memory of what may not be on spot machines. It
// shares nothing with the engine.
type bound struct {
	types []Type
}

const boundResources = 5

type amounts [boundResources]float64

func (r *Request) amounts() amounts {
	a := amounts{float64(r.MilliCPU), float64(r.MemoryMiB), float64(r.GPUs), 0, 0}
	if r.OnDemand {
		a[3], a[4] = a[0], a[1]
	}
	return a
}

func (t *Type) amounts() amounts {
	r := Request{MilliCPU: t.MilliCPU, MemoryMiB: t.MemoryMiB, GPUs: t.GPUs, OnDemand: !t.Spot}
	return r.amounts()
}

// usdPerHour solves the dual: prices of the resources that are worth most for what is asked for, while no type is worth
// more than it costs. It begins at prices of 0, and pivots by Bland's rule, which ends.
func (b bound) usdPerHour(asked amounts) float64 {
	rows, width := len(b.types), boundResources+len(b.types)+1
	table := make([][]float64, rows+1)
	for i := range table {
		table[i] = make([]float64, width)
		if i == rows {
			for r, amount := range asked {
				table[i][r] = -amount / scale[r]
			}
			break
		}
		for r, amount := range b.types[i].amounts() {
			table[i][r] = amount / scale[r]
		}
		table[i][boundResources+i], table[i][width-1] = 1, b.types[i].USDPerHour
	}
	basis := make([]int, rows)
	for i := range basis {
		basis[i] = boundResources + i
	}
	for {
		column := 0
		for column < width-1 && table[rows][column] >= -1e-9 {
			column++
		}
		if column == width-1 {
			return table[rows][width-1]
		}
		leaving, least := -1, math.Inf(1)
		for i := range rows {
			if table[i][column] <= 1e-12 {
				continue
			}
			ratio := table[i][width-1] / table[i][column]
			if ratio < least-1e-12 || ratio <= least+1e-12 && leaving >= 0 && basis[i] < basis[leaving] {
				leaving, least = i, min(ratio, least)
			}
		}
		if leaving < 0 {
			return math.Inf(1) // no machine has what is asked for
		}
		pivot(table, leaving, column)
		basis[leaving] = column
	}
}

// scale makes the amounts of a table about 1.
var scale = amounts{1000, 1024, 1, 1000, 1024}

func pivot(table [][]float64, row, column int) {
	divisor := table[row][column]
	for k := range table[row] {
		table[row][k] /= divisor
	}
	for i := range table {
		if factor := table[i][column]; i != row && factor != 0 {
			for k := range table[i] {
				table[i][k] -= factor * table[row][k]
			}
		}
	}
}
