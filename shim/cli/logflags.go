package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
)

// logFlags say how much is logged and in which form, as in components of Kubernetes.
type logFlags struct{ settings *logsapi.LoggingConfiguration }

// addLogFlags adds them; `level` is -v where nothing is said.
func addLogFlags(flags *pflag.FlagSet, level logsapi.VerbosityLevel) logFlags {
	f := logFlags{logsapi.NewLoggingConfiguration()}
	f.settings.Verbosity = level
	logsapi.AddFlags(f.settings, flags)
	flags.VisitAll(func(flag *pflag.Flag) {
		if strings.HasPrefix(flag.Name, "log-json-") || strings.HasPrefix(flag.Name, "log-text-") {
			flag.Hidden = true // they need a feature gate that we do not have
		}
	})
	return f
}

// apply brings the flags into effect, for the rest of the process.
func (f logFlags) apply() error {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged // tests run several commands in one process
	if err := logsapi.ValidateAndApply(f.settings, nil); err != nil {
		return usageError{fmt.Errorf("--logging-format and its like: %w", err)}
	}
	return nil
}
