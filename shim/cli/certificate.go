package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"loadline.dev/shim/certificates"
	"loadline.dev/shim/report/texttable"
)

// Names of the files that `gateway certificate` writes: those of a Kubernetes secret of type kubernetes.io/tls.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// certificateFlags are the flags of `gateway certificate`.
type certificateFlags struct {
	hosts    []string
	dir      string
	lifetime time.Duration
}

func (a *app) newCertificate() *cobra.Command {
	var f certificateFlags
	command := &cobra.Command{
		Use:   "certificate",
		Short: "Make a self-signed certificate for the gateway",
		Long: `Write a self-signed certificate and its key to tls.crt and tls.key. tls.crt is also what Cluster
Autoscaler takes as --grpc-expander-cert. Files that are there are left alone.

A running gateway takes a new pair without a restart, but an autoscaler reads its file when it starts: a
self-signed pair is renewed in both at a time. With an authority behind it, such as cert-manager's, only
the gateway's changes.`,
		Example: `  loadline gateway certificate --host loadline-gateway.kube-system.svc,127.0.0.1 --dir pair
  kubectl -n kube-system create secret tls loadline-gateway --cert pair/tls.crt --key pair/tls.key`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.writeCertificate(f)
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&f.hosts, "host", []string{"localhost", "127.0.0.1"},
		"names and addresses by which clients reach the gateway")
	flags.StringVar(&f.dir, "dir", ".", "folder to write to; made if it is not there")
	flags.DurationVar(&f.lifetime, "valid-for", 365*24*time.Hour, "how long the certificate is valid")
	return command
}

func (a *app) writeCertificate(f certificateFlags) error {
	cert, key, err := certificates.SelfSigned(f.hosts, time.Now(), f.lifetime)
	if err != nil {
		return usageError{err}
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	// The key first: a certificate without its key would be taken for a pair.
	for _, file := range []struct {
		name    string
		content []byte
		mode    fs.FileMode
	}{{keyFile, key, 0o600}, {certFile, cert, 0o644}} {
		name := filepath.Join(f.dir, file.name)
		if err := writeNew(name, file.content, file.mode); err != nil {
			return err
		}
		fmt.Fprintf(a.streams.Out, "%s\n", texttable.Escape(name))
	}
	return nil
}

// writeNew writes a file that is not there yet.
func writeNew(name string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already, and stays", name)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
