package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"loadline.dev/shim/engine"
)

// Version is that of the program.
const Version = engine.Version

// versionAnswer is the answer of `version` as data.
type versionAnswer struct {
	Loadline string `json:"loadline"`
	Engine   string `json:"engine"`
	// EngineLacks and LoadlineLacks are elements of the API that one side alone knows.
	EngineLacks   []string `json:"engineLacks"`
	LoadlineLacks []string `json:"loadlineLacks"`
}

func (a *app) newVersion() *cobra.Command {
	flags := engineFlags{}
	var output outputFlag
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the engine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			conn, err := flags.open()
			if err != nil {
				return err
			}
			defer conn.Close()
			difference, err := engine.Compare(cmd.Context(), conn)
			if err != nil {
				return fmt.Errorf("loadline %s; engine %s: %w", Version, flags.address, err)
			}
			v := versionAnswer{Version, difference.EngineVersion, append([]string{}, difference.EngineLacks...),
				append([]string{}, difference.ClientLacks...)}
			return output.write(a.streams.Out, answer{title: "Versions", data: v, lines: v.lines(),
				tables: []table{subject("", "")}})
		},
	}
	addEngineFlag(command.Flags(), &flags)
	addOutputFlag(command.Flags(), &output, formTable, formJSON, formYAML, formHTML)
	output.nameless = true
	return command
}

// lines say it in words.
func (v versionAnswer) lines() []string {
	lines := []string{"loadline " + v.Loadline, "engine " + v.Engine}
	for _, element := range v.EngineLacks {
		lines = append(lines, "the engine lacks "+element)
	}
	for _, element := range v.LoadlineLacks {
		lines = append(lines, "this program lacks "+element)
	}
	return lines
}
