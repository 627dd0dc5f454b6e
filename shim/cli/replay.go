package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/engine"
	"loadline.dev/shim/recording"
	"loadline.dev/shim/report/texttable"
)

// replayFlags are the flags of `replay`.
type replayFlags struct {
	engine engineFlags
	answer string
}

func (a *app) newReplay() *cobra.Command {
	var f replayFlags
	command := &cobra.Command{
		Use:   "replay FILE",
		Short: "Ask the engine again what was recorded, and tell whether it answers the same",
		Long: `Ask an engine that holds nothing again all that was written down with --record, and tell for each call
whether the answer has the same bytes. Ends with 1 if one has not.`,
		Example: `  loadline replay loop.rec
  loadline replay loop.rec --answer plan.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.replay(cmd.Context(), args[0], a.streams.Out)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.answer, "answer", "", "file to write the last plan to, JSON")
	addEngineFlag(flags, &f.engine)
	return command
}

func (f *replayFlags) replay(ctx context.Context, name string, out io.Writer) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	conn, err := f.engine.open()
	if err != nil {
		return err
	}
	defer conn.Close()
	table := texttable.New(texttable.Column{Header: "CALL", Align: texttable.Right}, texttable.Column{Header: "METHOD"},
		texttable.Column{Header: "ANSWER"})
	var last engine.Replayed
	calls, differ := 0, 0
	err = engine.Replay(ctx, conn, file, func(r engine.Replayed) error {
		answer := "the same"
		if !r.Same {
			answer = "differs"
			differ++
		}
		if r.Err != nil {
			answer += ", " + status.Code(r.Err).String()
		}
		table.Row(fmt.Sprint(calls), r.Recorded.GetMethod(), answer)
		calls++
		if strings.HasSuffix(r.Recorded.GetMethod(), "/PlanLoop") {
			last = r
		}
		return nil
	})
	if errors.Is(err, recording.ErrCut) {
		warnBeside(ctx, fmt.Sprintf("%s: %v", name, err))
	} else if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := table.Write(out); err != nil {
		return err
	}
	if err := f.writeAnswer(name, last.Answer); err != nil {
		return err
	}
	if differ > 0 {
		return fmt.Errorf("%s: %d of %d answers differ", name, differ, calls)
	}
	return nil
}

// writeAnswer writes the last plan of a recording to the file of --answer, if there is one.
func (f *replayFlags) writeAnswer(recording string, plan proto.Message) error {
	if f.answer == "" {
		return nil
	}
	if plan == nil {
		return fmt.Errorf("%s: it has no plan, and --answer %s is not written", recording, f.answer)
	}
	data, err := protojson.MarshalOptions{Multiline: true}.Marshal(plan)
	if err != nil {
		return err
	}
	return os.WriteFile(f.answer, append(data, '\n'), 0o644)
}
