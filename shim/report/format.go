package report

import (
	"math"
	"strconv"
	"strings"
)

// binaryUnits are the suffixes of Kubernetes quantities for 2^10, 2^20, ... bytes.
var binaryUnits = [...]string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}

// FormatAmount writes an amount as people write it: cores for cpu ("0.25"), binary units with at most two
// decimals for bytes ("1.5Gi"), else the plain number.
func FormatAmount(resource string, amount int64) string {
	switch {
	case resource == "cpu":
		return trimZeros(strconv.FormatFloat(float64(amount)/1000, 'f', 3, 64))
	case inBytes(resource):
		return formatBytes(amount)
	}
	return strconv.FormatInt(amount, 10)
}

func inBytes(resource string) bool {
	return resource == "memory" || resource == "ephemeral-storage" || strings.HasPrefix(resource, "hugepages-")
}

func formatBytes(amount int64) string {
	value, unit := float64(amount), ""
	for _, next := range binaryUnits {
		if value < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	return trimZeros(strconv.FormatFloat(value, 'f', 2, 64)) + unit
}

func trimZeros(number string) string {
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}

// FormatRatio writes a ratio with two decimals, rounded half up as on paper: 9/8 is 1.13.
func FormatRatio(ratio float64) string {
	if ratio < 1e12 { // beyond, a double holds no hundredths
		ratio = math.Floor(ratio*100+0.5) / 100
	}
	return strconv.FormatFloat(ratio, 'f', 2, 64)
}

// formatTwo writes any number with two decimals.
func formatTwo(number float64) string {
	return strconv.FormatFloat(number, 'f', 2, 64)
}
