// Package harness runs a Kubernetes control plane for tests and for the demo: real etcd, kube-apiserver, any
// number of schedulers, loadlined, the gateway, and when asked for kube-controller-manager, as child processes
// on loopback with free ports and a temporary folder. Nodes are API objects without a machine behind them,
// which is all that scheduling needs. Linux only.
//
// Nothing stays behind. Close stops everything in the right order and removes the folder; so do SIGINT, SIGTERM
// and SIGHUP, which then end the program. If the program dies without either, the kernel kills the processes
// and a small shell that outlives us removes the folder.
package harness

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"loadline.dev/shim/freeport"
)

// Options of a cluster. The zero value is a control plane without controllers and kubelets, without progress
// reports.
type Options struct {
	// Log takes progress reports: what is being built and started.
	Log Logf
	// ControllerManager also starts kube-controller-manager with the controllers that work without kubelets.
	ControllerManager bool
	// Kubelet also runs a stand-in for the kubelets: bound pods become Running and Ready, and are removed when
	// they are deleted.
	Kubelet bool
	// KubeletExcept are namespaces whose pods the stand-in leaves alone, for a PodRunner.
	KubeletExcept []string
	// Audit has the API server note each request that changes something; see Cluster.Changes.
	Audit bool
	// FlowControl leaves the API server's priority and fairness, and how many requests it takes at a time, as they are
	// by default.
	FlowControl bool
	// Gangs switches pod groups on: see GangGates.
	Gangs bool
}

// A Cluster is a running control plane.
type Cluster struct {
	// Client acts as system:masters, speaks protobuf and has no rate limit.
	Client kubernetes.Interface
	// Kubeconfig is a file with the same rights.
	Kubeconfig string

	log     Logf
	bin     string
	sandbox *sandbox
	config  *rest.Config
	options Options

	apiServer     *Process
	apiServerSpec processSpec
}

// Start builds what is missing and starts a control plane. On an error nothing is left running.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	components := []Component{Etcd, APIServer, StockScheduler}
	if options.ControllerManager {
		components = append(components, ControllerManager)
	}
	bin, err := Build(ctx, options.Log, components...)
	if err != nil {
		return nil, err
	}
	box, err := newSandbox()
	if err != nil {
		return nil, err
	}
	c := &Cluster{log: options.Log, bin: bin, sandbox: box, options: options}
	if err := c.startAll(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) startAll(ctx context.Context) error {
	c.log.printf("starting etcd and kube-apiserver")
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if c.options.ControllerManager {
		if err := c.StartControllerManager(ctx); err != nil {
			return err
		}
	}
	if c.options.Kubelet {
		return runKubelet(c.sandbox.ctx, c.Client, c.options.KubeletExcept, c.log)
	}
	return nil
}

// Close stops everything and removes the folder. Later calls return the same again.
func (c *Cluster) Close() error { return c.sandbox.close() }

// Dir returns the temporary folder.
func (c *Cluster) Dir() string { return c.sandbox.dir }

// Logs returns the end of each running component's log, for a test that failed.
func (c *Cluster) Logs() string {
	var text string
	for _, process := range c.sandbox.snapshot() {
		text += fmt.Sprintf("%s (%s):%s\n", process.Name, process.Exit(), process.tailSection())
	}
	return text
}

func (c *Cluster) path(name string) string { return filepath.Join(c.sandbox.dir, name) }

func (c *Cluster) component(component Component) string {
	return filepath.Join(c.bin, string(component))
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	socket := c.path("etcd.sock")
	_, err := c.sandbox.start(ctx, processSpec{
		name: string(Etcd),
		path: c.component(Etcd),
		args: []string{
			"--data-dir", c.path("etcd"),
			"--listen-client-urls", "unix://" + socket,
			"--advertise-client-urls", "http://127.0.0.1:0", // nobody asks; etcd insists on one
			"--listen-peer-urls", "http://127.0.0.1:0",
			"--log-level", "warn",
			"--unsafe-no-fsync", // the data is thrown away
			"--quota-backend-bytes", "2147483648",
		},
		ready: func(ctx context.Context) error { return dialUnix(ctx, socket) },
	})
	return err
}

func dialUnix(ctx context.Context, socket string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	token, err := randomToken()
	if err != nil {
		return err
	}
	if err := writeSigningKey(c.path("sa.key")); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("tokens.csv"), []byte(token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return err
	}
	if c.options.Audit {
		if err := c.writeAuditPolicy(); err != nil {
			return err
		}
	}
	port, err := freeport.Port()
	if err != nil {
		return err
	}
	c.config = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", port),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(c.path("certs"), "apiserver.crt")},
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"},
		QPS: -1,
	}
	c.apiServerSpec = processSpec{name: string(APIServer), path: c.component(APIServer), args: c.apiServerArgs(port),
		ready: c.apiServerReady}
	if c.apiServer, err = c.sandbox.start(ctx, c.apiServerSpec); err != nil {
		return err
	}
	if c.Client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.Kubeconfig, err = c.writeKubeconfig("admin", token)
	return err
}

// RestartAPIServer kills kube-apiserver, leaves it dead for a while, and starts it again: at the same address, with all
// that etcd holds.
func (c *Cluster) RestartAPIServer(ctx context.Context, dead time.Duration) error {
	c.apiServer.Kill()
	time.Sleep(dead)
	process, err := c.sandbox.start(ctx, c.apiServerSpec)
	if err != nil {
		return err
	}
	c.sandbox.replace(c.apiServer, process)
	c.apiServer = process
	return nil
}

func (c *Cluster) apiServerArgs(port int) []string {
	args := []string{
		"--etcd-servers=unix://" + c.path("etcd.sock"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + c.path("certs"), // writes a self-signed certificate there
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + c.path("sa.key"),
		"--service-account-key-file=" + c.path("sa.key"),
		"--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=RBAC", // so that the manifests' roles are tested for real
		"--service-cluster-ip-range=10.0.0.0/24",
		// ServiceAccount refuses pods until a controller has made an account, and TaintNodesByCondition taints
		// every node until its kubelet reports: there are neither.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		"--endpoint-reconciler-type=none",
		"--event-ttl=10m",
		"--profiling=false",
	}
	if !c.options.FlowControl { // one user creates everything; fairness between users would only slow it down
		args = append(args, "--enable-priority-and-fairness=false", "--max-requests-inflight=2000",
			"--max-mutating-requests-inflight=2000")
	}
	if c.options.Audit {
		args = append(args, c.auditArgs()...)
	}
	if c.options.Gangs {
		args = append(args, GangGates(), "--runtime-config="+gangVersion()+"=true")
	}
	return args
}

// apiServerReady waits for /readyz and for the namespaces that pods and manifests go to, which a hook creates
// shortly after.
func (c *Cluster) apiServerReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err // the certificate is not written yet
	}
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	for _, namespace := range []string{"default", "kube-system"} {
		if _, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// StartControllerManager starts kube-controller-manager with the controllers that work without kubelets, where
// Options.ControllerManager has not: after pods were created for ReplicaSets by hand.
func (c *Cluster) StartControllerManager(ctx context.Context) error {
	if _, err := Build(ctx, c.log, ControllerManager); err != nil {
		return err
	}
	c.log.printf("starting kube-controller-manager")
	port, err := freeport.Port()
	if err != nil {
		return err
	}
	_, err = c.sandbox.start(ctx, processSpec{
		name: string(ControllerManager),
		path: c.component(ControllerManager),
		args: []string{
			"--kubeconfig=" + c.Kubeconfig,
			"--authentication-kubeconfig=" + c.Kubeconfig,
			"--authorization-kubeconfig=" + c.Kubeconfig,
			"--leader-elect=false",
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", port),
			"--use-service-account-credentials=false",
			"--service-account-private-key-file=" + c.path("sa.key"),
			// Without node-lifecycle-controller: it would taint every node for want of a kubelet's lease.
			"--controllers=deployment-controller,replicaset-controller,statefulset-controller," +
				"daemonset-controller,job-controller,disruption-controller,garbage-collector-controller," +
				"namespace-controller,serviceaccount-controller,pod-garbage-collector-controller," +
				"endpointslice-controller",
			"--kube-api-qps=2000",
			"--kube-api-burst=2000",
			"--kube-api-content-type=application/vnd.kubernetes.protobuf",
			"--concurrent-gc-syncs=5",
		},
		ready: func(ctx context.Context) error {
			return c.getOK(ctx, fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
		},
	})
	return err
}

// ServiceAccountKubeconfig writes a kubeconfig that acts as a service account, which must exist: what a pod that
// runs under this account may do.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	request, err := c.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	return c.writeKubeconfig(namespace+"-"+name, request.Status.Token)
}

// UserKubeconfig writes a kubeconfig with the administrator's token that acts as another user, by impersonation.
func (c *Cluster) UserKubeconfig(user string, groups ...string) (string, error) {
	info := &clientcmdapi.AuthInfo{Token: c.config.BearerToken, Impersonate: user, ImpersonateGroups: groups}
	return c.writeKubeconfigFor("as-"+filepath.Base(user), info)
}

func (c *Cluster) writeKubeconfig(name, token string) (string, error) {
	return c.writeKubeconfigFor(name, &clientcmdapi.AuthInfo{Token: token})
}

func (c *Cluster) writeKubeconfigFor(name string, user *clientcmdapi.AuthInfo) (string, error) {
	file := c.path(name + ".kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthority: c.config.CAFile}
	config.AuthInfos[name] = user
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: name, Namespace: "default"}
	config.CurrentContext = "e2e"
	return file, clientcmd.WriteToFile(*config, file)
}

func randomToken() (string, error) {
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return "", err
	}
	return hex.EncodeToString(secret), nil
}

func writeSigningKey(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
