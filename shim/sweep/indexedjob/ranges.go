package indexedjob

import (
	"fmt"
	"strconv"
	"strings"
)

// formatRanges writes whole numbers, which rise, as Kubernetes writes indexes: 0-3,7.
func formatRanges(numbers []int) string {
	var out strings.Builder
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.Itoa(numbers[i]))
		if last > i {
			out.WriteString("-" + strconv.Itoa(numbers[last]))
		}
		i = last + 1
	}
	return out.String()
}

// parseRanges reads what formatRanges writes; all are below `end`.
func parseRanges(text string, end int) (numbers []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			return nil, fmt.Errorf("%q is no range of numbers", part)
		}
		to, err := strconv.Atoi(last)
		if err != nil || to < from || from < 0 || to >= end {
			return nil, fmt.Errorf("%q is no range of numbers below %d", part, end)
		}
		for n := from; n <= to; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}
