package scheduler

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/policy"
)

const argsKind = Name + "Args"

// The apiVersions of the arguments. kube-scheduler reads the arguments of its own plugins only: it hands on those of
// others as they are written, so that they may be of any group. The older one is of kube-scheduler's group, in which a
// kind of ours could meet one of its own; the minor version after the one in which loadline.dev/v1 appeared refuses it.
var (
	argsVersion = schema.GroupVersion{Group: "loadline.dev", Version: "v1"}
	oldVersion  = schema.GroupVersion{Group: "kubescheduler.config.k8s.io", Version: "v1"}
)

// oldArgs are the arguments under the older apiVersion. They have the same fields.
type oldArgs NodeResourcesLimitAwareArgs

// argsScheme has the versions of the arguments, their conversion, and the defaults of the present one.
var argsScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(argsVersion, &NodeResourcesLimitAwareArgs{})
	scheme.AddKnownTypeWithName(oldVersion.WithKind(argsKind), &oldArgs{})
	scheme.AddTypeDefaultingFunc(&NodeResourcesLimitAwareArgs{}, func(args any) {
		args.(*NodeResourcesLimitAwareArgs).setDefaults()
	})
	utilruntime.Must(scheme.AddConversionFunc((*oldArgs)(nil), (*NodeResourcesLimitAwareArgs)(nil),
		func(from, into any, _ conversion.Scope) error {
			*into.(*NodeResourcesLimitAwareArgs) = NodeResourcesLimitAwareArgs(*from.(*oldArgs))
			return nil
		}))
	return scheme
}()

// decodeVersioned decodes arguments strictly, of whatever known version, and converts them to the present one. Without
// an apiVersion or a kind they are of the present one.
func decodeVersioned(data []byte, into *NodeResourcesLimitAwareArgs) error {
	var written metav1.TypeMeta
	if err := yaml.Unmarshal(data, &written); err != nil {
		return err
	}
	kind := argsVersion.WithKind(argsKind)
	if written.Kind != "" && written.Kind != argsKind {
		return field.NotSupported(field.NewPath("kind"), written.Kind, []string{argsKind})
	}
	if written.APIVersion != "" {
		kind = schema.FromAPIVersionAndKind(written.APIVersion, argsKind)
	}
	args, err := argsScheme.New(kind)
	if err != nil {
		return field.NotSupported(field.NewPath("apiVersion"), written.APIVersion,
			[]string{argsVersion.String(), oldVersion.String()})
	}
	// The scheme's own codecs are as strict, but their errors name types of Go.
	if err := policy.DecodeStrict(data, args); err != nil {
		return err
	}
	if present, ok := args.(*NodeResourcesLimitAwareArgs); ok {
		*into = *present
		return nil
	}
	return argsScheme.Convert(args, into, nil)
}

// DeepCopyObject returns a copy that shares nothing.
func (a *NodeResourcesLimitAwareArgs) DeepCopyObject() runtime.Object {
	return copyOf(a, &NodeResourcesLimitAwareArgs{})
}

// DeepCopyObject returns a copy that shares nothing.
func (a *oldArgs) DeepCopyObject() runtime.Object { return copyOf(a, &oldArgs{}) }

// copyOf copies by JSON, in which all fields are written and read.
func copyOf[T runtime.Object](from, into T) T {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	utilruntime.Must(err)
	return into
}
