package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"loadline.dev/shim/api/loadlinev1"
)

// Version is that of the program. A test holds it equal to the version of the engine's build.
const Version = "0.1.0"

func (a *app) newVersion() *cobra.Command {
	engine := engineFlags{}
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the engine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(a.streams.Out, "loadline %s\n", Version)
			conn, err := engine.open()
			if err != nil {
				return err
			}
			defer conn.Close()
			held, err := loadlinev1.NewClusterStateClient(conn).Describe(cmd.Context(), &loadlinev1.DescribeRequest{})
			if err != nil {
				return fmt.Errorf("engine %s: %w", engine.address, err)
			}
			fmt.Fprintf(a.streams.Out, "engine %s\n", held.GetEngineVersion())
			return nil
		},
	}
	addEngineFlag(command.Flags(), &engine)
	return command
}
