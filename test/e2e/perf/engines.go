package perf

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// testContext is what we need of scheduler_perf's ktesting.TContext, which is in another package from 1.37 on.
type testContext interface {
	context.Context
	RESTConfig() *rest.Config
	Cleanup(func())
	Errorf(format string, args ...any)
}

// readyTimeout is how long an engine or a gateway may take to answer.
const readyTimeout = 30 * time.Second

// startEngine starts loadlined on the socket; it ends with the workload.
func (s settings) startEngine(tCtx testContext, bin string) error {
	if err := s.start(tCtx, filepath.Join(bin, "loadlined"), "--socket="+s.socket); err != nil {
		return err
	}
	return waitFor(tCtx, "loadlined", func() error {
		conn, err := net.Dial("unix", s.socket)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// startGateway starts the gateway against the workload's API server; it ends with the workload, and its counts until
// then are added to result.
func (s settings) startGateway(tCtx testContext, bin string, result *Result) error {
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	if err := writeKubeconfig(tCtx.RESTConfig(), kubeconfig); err != nil {
		return err
	}
	if err := s.start(tCtx, filepath.Join(bin, "loadline"), "gateway", "--extender-address="+s.extenderAddress,
		"--kubeconfig="+kubeconfig); err != nil {
		return err
	}
	tCtx.Cleanup(func() { // runs before the gateway is stopped
		answered, all, err := s.gatewayRequests()
		if err != nil {
			tCtx.Errorf("metrics of the gateway: %v", err)
		}
		result.Answered, result.Cycles = answered, all
	})
	return waitFor(tCtx, "the gateway", func() error {
		response, err := http.Get("http://" + s.extenderAddress + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %s", response.Status)
		}
		return nil
	})
}

// start starts a program whose output is written to a log in the folder, and stops it when the workload ends.
func (s settings) start(tCtx testContext, program string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, filepath.Base(program)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return err
	}
	tCtx.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	return nil
}

func waitFor(ctx context.Context, what string, ready func() error) error {
	deadline := time.Now().Add(readyTimeout)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer: %w", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// gatewayRequests reads how many requests the gateway answered with scores of the engine, and how many in all.
func (s settings) gatewayRequests() (scored, all int, err error) {
	response, err := http.Get("http://" + s.extenderAddress + "/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if !found || !strings.HasPrefix(name, "loadline_extender_requests_total{") {
			continue
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, 0, err
		}
		all += int(count)
		if strings.Contains(name, `result="scored"`) {
			scored += int(count)
		}
	}
	return scored, all, lines.Err()
}

func writeKubeconfig(config *rest.Config, path string) error {
	const name = "perf"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: config.Host, TLSServerName: config.ServerName,
			CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}
