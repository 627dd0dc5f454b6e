// Command loadline-scheduler is kube-scheduler with the plugin NodeResourcesLimitAware compiled in. It takes the
// flags and configuration files of kube-scheduler.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"loadline.dev/shim/scheduler"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(scheduler.Name, scheduler.New))))
}
