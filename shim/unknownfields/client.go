package unknownfields

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// NewClient returns a client whose pods and nodes have notes about fields that they have and their Go types have not.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	whole, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core := rest.CopyConfig(config)
	core.APIPath, core.GroupVersion = "/api", &v1.SchemeGroupVersion
	core.NegotiatedSerializer = serializer{
		rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()}
	if core.UserAgent == "" {
		core.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.RESTClientFor(core)
	if err != nil {
		return nil, err
	}
	return noticing{whole, typedcore.New(client)}, nil
}

// noticing is a client with core objects of another one.
type noticing struct {
	kubernetes.Interface
	core typedcore.CoreV1Interface
}

func (n noticing) CoreV1() typedcore.CoreV1Interface { return n.core }

// serializer decodes as another one does, and takes note of unknown fields.
type serializer struct{ runtime.NegotiatedSerializer }

func (s serializer) DecoderToVersion(of runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return decoder{s.NegotiatedSerializer.DecoderToVersion(of, version)}
}

type decoder struct{ runtime.Decoder }

func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil {
		inEnvelope(data, object)
	}
	return object, kind, err
}
