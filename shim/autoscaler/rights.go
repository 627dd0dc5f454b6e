package autoscaler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
)

// When rights are looked at: a moment after the start, so that a slow API server is no reason to say anything, and
// again for as long as some are missing.
const (
	rightsFirst = 10 * time.Second
	rightsAgain = 30 * time.Second
)

// watched are the resources that plans are made from, as GROUP/RESOURCE, beside those of watch.Optional. Without the
// right to list and watch one of them there is no plan: a kind that nobody sees would count as absent.
var watched = []string{"/nodes", "/pods", "/persistentvolumes", "/persistentvolumeclaims", "/replicationcontrollers",
	"apps/replicasets", "apps/statefulsets", "apps/daemonsets", "batch/jobs", "policy/poddisruptionbudgets",
	"storage.k8s.io/storageclasses", "storage.k8s.io/csinodes"}

// right is what this process has to be allowed to do with one resource.
type right struct {
	verbs                     []string
	group, resource, of, name string // `of` is the subresource
	namespace                 string // empty: all
	folder                    string // the one of manifests/autoscaler that gives the right
	effect                    string // of plans without it; empty: the same as that of others of its kind
}

// Folders of manifests/autoscaler. The drop-in for Cluster Autoscaler binds its account to the roles of some of them.
const (
	observeFolder = "10-rbac.yaml"
	actFolder     = "act/"
	nodesFolder   = "act-nodes/"
	slackFolder   = "slack/"
	buffersFolder = "slack-capacitybuffers/"
	othersFolder  = "capacity-buffers/"
	toldFolder    = "act-capacity-buffers/"
	orderFolder   = "act-downscale-order/"
	unsafeFolder  = "act-despite-budgets/"
)

// rightsToPlan are those without which there is no plan.
func rightsToPlan() (all []right) {
	for _, resource := range watched {
		group, name, _ := strings.Cut(resource, "/")
		all = append(all, right{verbs: []string{"list", "watch"}, group: group, resource: name, folder: observeFolder})
	}
	return all
}

// buffersGroup is the API group of CapacityBuffers.
const buffersGroup = "autoscaling.x-k8s.io"

// rightsToKnowAll are those without which there are plans, but from less than all that counts.
func rightsToKnowAll(client kubernetes.Interface, c *config.Configuration) (all []right) {
	follow := []string{"list", "watch"}
	for _, kind := range watch.Optional {
		if kind.Kind == "DeviceClass" && !watch.ServesDevices(client) {
			continue
		}
		all = append(all, right{verbs: follow, group: kind.Group, resource: kind.Resource, folder: observeFolder,
			effect: kind.Effect})
	}
	if c.LeaderElection.LeaderElect {
		all = append(all, right{verbs: follow, group: "coordination.k8s.io", resource: "leases", namespace: c.Namespace,
			name: c.LeaderElection.ResourceName, folder: observeFolder, effect: "watches that are behind are not noticed"})
	}
	if c.Slack.CapacityBuffers && c.Decides(config.SlackDecision) {
		all = append(all, right{verbs: []string{"list"}, group: buffersGroup, resource: "capacitybuffers",
			folder: othersFolder, effect: "no room is kept for CapacityBuffers"})
	}
	return all
}

// rightsToAct are those without which a plan is not carried out as a whole. A cloud provider tells of its own ones.
func rightsToAct(c *config.Configuration) []right {
	if c.Mode != config.Act {
		return nil
	}
	all := []right{{verbs: []string{"get", "update"}, resource: "configmaps", namespace: c.Namespace,
		name: plan.StateName(c), folder: actFolder}}
	removes := c.Decides(config.ScaleDownDecision) || c.Sizing.NodeGroups != ""
	if removes || c.Decides(config.ScaleUpDecision) { // nodes that were marked before are given back
		all = append(all, right{verbs: []string{"get", "patch"}, resource: "nodes", folder: nodesFolder})
	}
	if removes {
		all = append(all, right{verbs: []string{"get"}, resource: "pods", folder: nodesFolder},
			right{verbs: []string{"create"}, resource: "pods", of: "eviction", folder: nodesFolder})
	}
	if c.Decides(config.DownscaleOrderDecision) {
		all = append(all, right{verbs: []string{"patch"}, resource: "pods", folder: orderFolder})
	}
	if c.ScaleDown.UnsafeDeletePodsDespiteDisruptionBudgets {
		all = append(all, right{verbs: []string{"delete"}, resource: "pods", folder: unsafeFolder})
	}
	if !c.Decides(config.SlackDecision) {
		return all
	}
	if c.Slack.CapacityBuffers {
		all = append(all, right{verbs: []string{"patch"}, group: buffersGroup, resource: "capacitybuffers", of: "status",
			folder: toldFolder})
	}
	kept := []string{"list", "create", "patch", "delete"}
	switch c.Slack.Keep {
	case config.SlackDeployments:
		all = append(all, right{verbs: kept, group: "apps", resource: "deployments", namespace: c.Slack.Namespace,
			folder: slackFolder})
	case config.SlackCapacityBuffers:
		all = append(all, right{verbs: kept, group: buffersGroup, resource: "capacitybuffers",
			namespace: c.Slack.Namespace, folder: buffersFolder},
			right{verbs: []string{"list", "create", "delete"}, resource: "podtemplates", namespace: c.Slack.Namespace,
				folder: buffersFolder})
	}
	return all
}

// FollowRights says in log, events, status and /readyz which rights this process lacks, and how it gets them, until it
// has them or the context ends.
func (a *Autoscaler) FollowRights(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: a.client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, tell.EventSource(a.config))
	status := &v1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: a.config.Namespace,
		Name: a.config.StatusConfigMap}
	said := ""
	for wait := rightsFirst; ; wait = rightsAgain {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		text := missingRights(ctx, a.client, a.config, a.cluster.Ready())
		a.vitals.missing.Store(&text)
		if text == "" || ctx.Err() != nil {
			return
		}
		if text != said {
			klog.InfoS("Warning: " + text)
			recorder.Event(status, v1.EventTypeWarning, "RightsMissing", text)
		}
		said = text
	}
}

// missingRights returns which rights are missing of those that plans, and in mode act their actions, need, and how to
// get them; empty: none is, or the API server does not say. `listed`: all that no plan is made without was listed.
func missingRights(ctx context.Context, client kubernetes.Interface, c *config.Configuration, listed bool) string {
	var effect string // the first one, which is the worst
	var missing []right
	lacks := func(refused []right, means string) {
		if len(refused) > 0 && effect == "" {
			effect = means
		}
		missing = append(missing, refused...)
	}
	if !listed {
		lacks(refusedOf(ctx, client, rightsToPlan()), "no plan is made")
	}
	lacks(refusedOf(ctx, client, rightsToAct(c)), "plans are not carried out as a whole")
	lacks(refusedOf(ctx, client, rightsToKnowAll(client, c)), "plans are made without some objects")
	if len(missing) == 0 {
		return ""
	}
	var texts, folders []string
	for _, r := range missing {
		texts = append(texts, r.String())
		if !slices.Contains(folders, r.folder) {
			folders = append(folders, r.folder)
		}
	}
	return fmt.Sprintf("%s: the account of this process may not %s. %s", effect, strings.Join(texts, ", "),
		remedy(folders, c.LeaderElection.ResourceName == upstreamLease, serviceAccount(ctx, client)))
}

// refusedOf returns the rights that are missing, each with the verbs that are refused.
func refusedOf(ctx context.Context, client kubernetes.Interface, needed []right) (missing []right) {
	for _, r := range needed {
		var verbs []string
		for _, verb := range r.verbs {
			if isRefused(ctx, client, &authorizationv1.ResourceAttributes{Group: r.group, Resource: r.resource,
				Subresource: r.of, Namespace: r.namespace, Name: r.name, Verb: verb}) {
				verbs = append(verbs, verb)
			}
		}
		if r.verbs = verbs; len(verbs) > 0 {
			missing = append(missing, r)
		}
	}
	return missing
}

// String says what is allowed, such as "list and watch jobs.batch", and what lacks without it.
func (r right) String() string {
	what := r.resource
	if r.group != "" {
		what += "." + r.group
	}
	if r.of != "" {
		what += "/" + r.of
	}
	switch {
	case r.name != "":
		what += " " + r.namespace + "/" + r.name
	case r.namespace != "":
		what += " in " + r.namespace
	}
	if r.effect != "" {
		what += " (" + r.effect + ")"
	}
	return strings.Join(r.verbs, " and ") + " " + what
}

// remedy says which command gives the rights of folders to an account. That of Cluster Autoscaler needs bindings to
// their roles too: the drop-in has those for the usual decisions, and the administrator makes the others. No manifest
// binds accounts of other names.
func remedy(folders []string, dropIn bool, account string) string {
	var roles []string
	bound, bindings := "kube-system/loadline-autoscaler", folders
	if dropIn {
		bound, bindings = "kube-system/cluster-autoscaler", nil
		for _, folder := range folders {
			binding := "drop-in-act/"
			switch folder {
			case observeFolder:
				binding = "drop-in/"
			case buffersFolder, othersFolder, toldFolder, orderFolder, unsafeFolder:
				roles = append(roles, "loadline-autoscaler:"+strings.TrimSuffix(folder, "/"))
				continue
			}
			if !slices.Contains(bindings, binding) {
				bindings = append(bindings, binding)
			}
		}
		folders = append(folders, bindings...)
	}
	command := ""
	for _, folder := range folders {
		command += " -f manifests/autoscaler/" + folder
	}
	text := fmt.Sprintf("`kubectl apply%s` gives it the rights", command)
	if account != "" && account != bound && len(bindings) > 0 {
		text = fmt.Sprintf("`kubectl apply%s` gives the rights to %s, but this process runs as %s: edit the subjects of "+
			"the bindings in %s first", command, bound, account, strings.Join(bindings, " and "))
	}
	if len(roles) > 0 {
		text += "; bind it to " + strings.Join(roles, " and ") + " too"
	}
	return text
}

// isRefused says whether the API server refuses a request of this process.
func isRefused(ctx context.Context, client kubernetes.Interface, what *authorizationv1.ResourceAttributes) bool {
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}, metav1.CreateOptions{})
	return err == nil && !answer.Status.Allowed && answer.Status.EvaluationError == ""
}

// serviceAccount returns the account of this process, as NAMESPACE/NAME. It is empty for another kind of user, or if
// the API server does not say.
func serviceAccount(ctx context.Context, client kubernetes.Interface) string {
	answer, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	name, is := strings.CutPrefix(answer.Status.UserInfo.Username, "system:serviceaccount:")
	if !is {
		return ""
	}
	return strings.Replace(name, ":", "/", 1)
}
