//go:build race

package view

// slowdown is what tests of values, not of races, may divide their work by.
const slowdown = 10
