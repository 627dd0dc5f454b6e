package config

// upstreamFlags are the flags of Cluster Autoscaler (those of August 2026, and older ones that manifests still carry)
// that are no settings here. Settings have Cluster Autoscaler's names already, see Configuration.
var upstreamFlags = []UpstreamFlag{
	// Flags of cloud providers.
	meaning("cloud-provider", "clusterapi: --cloud=cluster-api; externalgrpc: --cloud=externalgrpc with the address and "+
		"certificates of the --cloud-config file; others: without --cloud there is no provider, and nothing is done",
		(*Configuration).followProvider),
	boolean("aws-use-static-instance-list", "nothing here asks AWS for instance types"),
	boolean("bulk-mig-instances-listing-enabled", "the provider lists instances as it does"),
	text("cloud-provider-gce-l7lb-src-cidrs", "nothing here makes firewalls or load balancers"),
	text("cloud-provider-gce-lb-src-cidrs", "nothing here makes firewalls or load balancers"),
	text("cluster-name", "node groups are found by the provider, and not by the name of the cluster"),
	text("concurrent-gce-refreshes", "nothing here asks GCE"),
	text("gce-concurrent-refreshes", "nothing here asks GCE"),
	boolean("gce-expander-ephemeral-storage-support", "ephemeral storage counts as any other resource"),
	text("gce-mig-instances-min-refresh-wait-time", "nothing here asks GCE"),
	text("nodes", "node groups and their bounds are the provider's"),
	text("configmap", "settings are flags and the file of --config"),
	boolean("regional", "zones are those of the nodes"),
	text("user-agent", "requests name loadline and its version"),

	// Flags with a meaning.
	meaning("address", "--bind-address", func(c *Configuration, values []string) error {
		c.BindAddress = last(values)
		return nil
	}),
	switching("scale-down-enabled", "false: scale-down is not among the --decisions, nor what needs it",
		func(c *Configuration, on bool) { c.withoutScaleDown(!on) }),
	always("enable-csi-node-aware-scheduling", "true", "what CSINodes say always counts"),
	always("enable-dynamic-resource-allocation", "true", "device classes are always watched"),
	always("scale-from-unschedulable", "true", "a cordon of one node never counts for the next one"),
	always("scale-up-from-zero", "true", "groups grow also while no node is ready, unless too many are not"),
	always("salvo-scale-up", "true", "all groups that are to grow do so in one loop"),
	always("parallel-scale-up", "true", "groups grow side by side"),
	always("frequent-loops-enabled", "true", "a loop begins early where a removal has ended or pods come"),
	always("leader-elect-resource-lock", "leases", "the lock is a Lease"),

	// Flags without a counterpart in Loadline.
	boolean("async-node-groups", "no node groups are made or deleted"),
	boolean("capacity-buffer-pod-dry-run-enabled", "the templates of CapacityBuffers count as they are"),
	always("capacity-buffer-pod-injection-enabled", "true",
		"--capacity-buffer-controller-enabled keeps what CapacityBuffers ask for"),
	always("capacity-buffer-ready-replicas-enabled", "true",
		"readyReplicas of a CapacityBuffer is written where its definition has the field"),
	boolean("check-capacity-batch-processing", noRequests),
	text("check-capacity-processor-instance", noRequests),
	text("check-capacity-provisioning-request-batch-timebox", noRequests),
	text("check-capacity-provisioning-request-max-batch-size", noRequests),
	boolean("enable-proactive-scaleup", "room for pods to come is --extra-capacity-min-rate"),
	boolean("enable-provisioning-requests", "ProvisioningRequests are not read and get no answer, so that whoever waits "+
		"for one, such as an admission check of Kueue, waits forever; groups grow for pods that wait"),
	boolean("force-delete-failed-nodes", noForce),
	boolean("force-delete-unregistered-nodes", noForce),
	text("pod-injection-limit", "no pods are made up but those of slack"),
	boolean("proactive-scaleup-enabled", "room for pods to come is --extra-capacity-min-rate"),
	text("provisioning-request-initial-backoff-time", noRequests),
	text("provisioning-request-max-backoff-cache-size", noRequests),
	text("provisioning-request-max-backoff-time", noRequests),
	text("unready-nodes-scope", "all nodes of the cluster count among those that may be not ready"),

	// Flags by which Cluster Autoscaler bounds its work.
	text("cluster-snapshot-parallelism", noDetail),
	boolean("debugging-snapshot-enabled", "the page at --bind-address shows the last loop, and `loadline plan --record` "+
		"keeps one"),
	boolean("dynamic-node-delete-delay-after-taint-enabled", "the time is --node-delete-delay-after-taint"),
	boolean("enable-graceful-degradation", "--max-work bounds a loop"),
	boolean("enable-inter-pod-affinity-hostname-fast-path", noDetail),
	text("estimator", "all groups are planned together, exactly"),
	boolean("fastpath-binpacking-enabled", noDetail),
	text("grpc-expander-cert", noExpander),
	text("grpc-expander-url", noExpander),
	text("kube-api-content-type", "requests are protobuf where the API server takes it"),
	text("leader-elect-resource-namespace", "the lease is in --namespace"),
	text("max-autoprovisioned-node-group-count", "no node groups are made"),
	text("max-binpacking-time", "--max-work bounds a loop"),
	text("max-failing-time",
		"a provider or API server that fails is no reason to begin anew; metrics and alerts tell of it"),
	text("max-free-difference-ratio", "groups are alike by what their nodes offer, and not by what is free on them"),
	boolean("max-node-skip-eval-time-tracker-enabled",
		"every node is looked at within a few loops, and metrics say how many were left"),
	text("max-nodegroup-binpacking-duration", "--max-work bounds a loop"),
	text("max-startup-time", "/readyz says until when the process starts"),
	boolean("node-autoprovisioning-enabled", "no node groups are made"),
	text("node-info-cache-expire-time", noDetail),
	boolean("node-removal-latency-tracking-enabled", "events and the page tell how long removals took"),
	boolean("parallel-drain", "nodes always drain in parallel: --max-drain-parallelism"),
	text("pending-pods-batching-timeout", "--max-work bounds a loop"),
	text("predicate-parallelism", noDetail),
	boolean("record-duplicated-events", "events of one kind on one object are counted together"),
	text("salvo-scale-up-budget", "--max-work bounds a loop"),
	text("scale-down-candidates-pool-min-count", "all nodes are looked at: --min-evaluated-nodes"),
	text("scale-down-candidates-pool-ratio", "all nodes are looked at: --min-evaluated-nodes"),
	text("scale-down-non-empty-candidates-count", "all nodes are looked at: --min-evaluated-nodes"),
	boolean("scaleup-simulation-for-skipped-node-groups-enabled", noDetail),
	text("scale-down-trial-interval", "every node is looked at in each loop"),
	text("scheduler-verbosity", "there is one -v"),
	text("unremovable-node-recheck-timeout", "every node is looked at in each loop"),
	boolean("verify-unschedulable-pods", "pods that wait are tried on all nodes in each loop"),

	// Flags of klog that component-base took out.
	boolean("add-dir-header", noKlog), boolean("alsologtostderr", noKlog), text("feature-gates", "there are none"),
	text("log-backtrace-at", noKlog), text("log-dir", noKlog), text("log-file", noKlog),
	text("log-file-max-size", noKlog), always("logtostderr", "true", "the log goes to standard error"),
	boolean("one-output", noKlog), boolean("skip-headers", noKlog), boolean("skip-log-headers", noKlog),
	text("stderrthreshold", noKlog),
}

const (
	noDetail   = "it is a detail of how Cluster Autoscaler works"
	noExpander = "no other process is asked which group grows"
	noForce    = "a group never gets smaller than its minimum; failed machines are replaced, and their group backs off"
	noKlog     = "the log goes to standard error: -v, --vmodule and --logging-format"
	noRequests = "ProvisioningRequests are not read: see --enable-provisioning-requests"
)
