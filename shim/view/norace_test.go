//go:build !race

package view

const slowdown = 1
