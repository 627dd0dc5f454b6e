// Command answers asks an engine about random clusters and prints one hash of all its answers. Two builds that answer
// byte for byte the same print the same hash: this is how a change that must change nothing is checked.
//
//	go run ./cmd/answers --library build/lib/libloadline.so --clusters 20000
//
// With --out FILE it writes one line per cluster: the first line that differs names the seed.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "answers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	library := flag.String("library", "../../build/lib/libloadline.so", "the engine: a libloadline.so")
	first := flag.Uint64("first", 1, "the first seed")
	clusters := flag.Uint64("clusters", 20000, "how many clusters")
	out := flag.String("out", "", "write a line with the hash of each cluster's answers to this file")
	flag.Parse()

	lines := io.Discard
	if *out != "" {
		file, err := os.Create(*out)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		buffered := bufio.NewWriter(file)
		defer func() { _ = buffered.Flush() }()
		lines = buffered
	}
	asker, err := newAsker(*library)
	if err != nil {
		return err
	}
	defer func() { _ = asker.conn.Close() }()
	all := sha256.New()
	for seed := *first; seed < *first+*clusters; seed++ {
		sum, err := asker.ask(ctx, seed)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		all.Write(sum)
		if _, err := fmt.Fprintf(lines, "%d %s\n", seed, hex.EncodeToString(sum[:8])); err != nil {
			return err
		}
		if done := seed - *first + 1; done%1000 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d clusters, %d answers, %d refusals\n", done, *clusters, asker.answers,
				asker.refusals)
		}
	}
	fmt.Printf("%s  %d clusters from seed %d, %d answers, %d refusals, %d nodes go, %d nodes come\n",
		hex.EncodeToString(all.Sum(nil)[:16]), *clusters, *first, asker.answers, asker.refusals, asker.going,
		asker.coming)
	return nil
}
