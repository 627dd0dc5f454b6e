package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"loadline.dev/shim/engine"
)

// Version is that of the program.
const Version = engine.Version

func (a *app) newVersion() *cobra.Command {
	flags := engineFlags{}
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the engine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(a.streams.Out, "loadline %s\n", Version)
			conn, err := flags.open()
			if err != nil {
				return err
			}
			defer conn.Close()
			difference, err := engine.Compare(cmd.Context(), conn)
			if err != nil {
				return fmt.Errorf("engine %s: %w", flags.address, err)
			}
			fmt.Fprintf(a.streams.Out, "engine %s\n", difference.EngineVersion)
			for _, element := range difference.EngineLacks {
				fmt.Fprintf(a.streams.Out, "the engine lacks %s\n", element)
			}
			for _, element := range difference.ClientLacks {
				fmt.Fprintf(a.streams.Out, "this program lacks %s\n", element)
			}
			return nil
		},
	}
	addEngineFlag(command.Flags(), &flags)
	return command
}
