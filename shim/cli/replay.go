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
)

// replayFlags are the flags of `replay`.
type replayFlags struct {
	engine engineFlags
	output outputFlag
	answer string
}

// replayed is the answer of `replay` as data.
type replayed struct {
	Calls []replayedCall `json:"calls"`
	// Differ counts those whose answers differ.
	Differ int `json:"differ"`
}

type replayedCall struct {
	Call   int    `json:"call"` // from 0
	Method string `json:"method"`
	Same   bool   `json:"same"`
	// Error is the code of an error that the engine answers with.
	Error string `json:"error,omitempty"`
}

var replayTables = []table{{rows: "calls", columns: []column{{header: "CALL", path: "call", right: true},
	{header: "METHOD", path: "method"}, {header: "ANSWER", text: func(r row) string {
		answer := "differs"
		if r["same"] == true {
			answer = "the same"
		}
		if code := r.str("error"); code != "" {
			answer += ", " + code
		}
		return answer
	}}}}}

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
	addOutputFlag(flags, &f.output, formTable, formJSON, formYAML, formHTML)
	f.output.nameless = true
	return command
}

func (f *replayFlags) replay(ctx context.Context, name string, out io.Writer) error {
	if err := f.output.check(); err != nil {
		return err
	}
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
	answers := replayed{Calls: []replayedCall{}}
	var last engine.Replayed
	err = engine.Replay(ctx, conn, file, func(r engine.Replayed) error {
		call := replayedCall{Call: len(answers.Calls), Method: r.Recorded.GetMethod(), Same: r.Same}
		if r.Err != nil {
			call.Error = status.Code(r.Err).String()
		}
		if !r.Same {
			answers.Differ++
		}
		answers.Calls = append(answers.Calls, call)
		if strings.HasSuffix(call.Method, "/PlanLoop") {
			last = r
		}
		return nil
	})
	if errors.Is(err, recording.ErrCut) {
		warnBeside(ctx, fmt.Sprintf("%s: %v", name, err))
	} else if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := f.output.write(out, answer{title: "Replay", data: answers, tables: replayTables}); err != nil {
		return err
	}
	if err := f.writeAnswer(name, last.Answer); err != nil {
		return err
	}
	if answers.Differ > 0 {
		return fmt.Errorf("%s: %d of %d answers differ", name, answers.Differ, len(answers.Calls))
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
