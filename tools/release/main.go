// Command release makes images, pushes them, and makes and verifies releases. `make images`, `make push`, `make
// release` and `make verify-release` call it.
package main

import (
	"flag"
	"fmt"
	"os"
)

var commands = map[string]func(flags *flag.FlagSet, args []string) error{
	"images":  images,
	"push":    push,
	"unpack":  unpack,
	"run":     runImage,
	"release": release,
	"verify":  verify,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which command? One of images, push, unpack, run, release, verify")
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("there is no command %q", args[0])
	}
	return command(flag.NewFlagSet(args[0], flag.ContinueOnError), args[1:])
}
