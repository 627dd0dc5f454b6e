package contain

import (
	"errors"
	"fmt"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	profiles "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// filterCalls lets this thread, and what it becomes, ask of the kernel what the profile RuntimeDefault allows a
// container without capabilities: Docker's, from which that of containerd hardly differs.
func filterCalls() error {
	policy, err := runtimeDefault()
	if err != nil {
		return err
	}
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: policy})
}

// runtimeDefault returns that profile in the form that becomes a program of the kernel. Calls that this architecture
// does not have are left out.
func runtimeDefault() (seccomp.Policy, error) {
	none := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}}
	profile, err := profiles.GetDefaultProfile(none)
	if err != nil {
		return seccomp.Policy{}, err
	}
	ours, err := arch.GetInfo("")
	if err != nil {
		return seccomp.Policy{}, err
	}
	allowed := seccomp.SyscallGroup{Action: seccomp.ActionAllow}
	restricted := seccomp.SyscallGroup{Action: seccomp.ActionAllow}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionErrno}
	seen := map[string]bool{}
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			if _, known := ours.SyscallNames[name]; !known {
				continue
			}
			switch {
			case rule.Action == specs.ActErrno && rule.ErrnoRet != nil:
				policy.Syscalls = append(policy.Syscalls, seccomp.SyscallGroup{Names: []string{name},
					Action: seccomp.ActionErrno | seccomp.Action(syscall.Errno(*rule.ErrnoRet))})
			case rule.Action != specs.ActAllow:
				return seccomp.Policy{}, fmt.Errorf("%s: action %s is not known", name, rule.Action)
			case len(rule.Args) > 0:
				conditions, err := conditionsOf(rule.Args)
				if err != nil {
					return seccomp.Policy{}, fmt.Errorf("%s: %w", name, err)
				}
				restricted.NamesWithCondtions = append(restricted.NamesWithCondtions,
					seccomp.NameWithConditions{Name: name, Conditions: conditions})
			case !seen[name]:
				seen[name] = true
				allowed.Names = append(allowed.Names, name)
			}
		}
	}
	policy.Syscalls = append(policy.Syscalls, allowed, restricted)
	return policy, nil
}

var operations = map[specs.LinuxSeccompOperator]seccomp.Operation{
	specs.OpEqualTo: seccomp.Equal, specs.OpNotEqual: seccomp.NotEqual, specs.OpLessThan: seccomp.LessThan,
	specs.OpLessEqual: seccomp.LessOrEqual, specs.OpGreaterThan: seccomp.GreaterThan,
	specs.OpGreaterEqual: seccomp.GreaterOrEqual}

// conditionsOf returns what the arguments of a call have to be.
func conditionsOf(args []specs.LinuxSeccompArg) (conditions seccomp.ArgumentConditions, err error) {
	for _, arg := range args {
		operation, ok := operations[arg.Op]
		if arg.Op == specs.OpMaskedEqual && arg.ValueTwo == 0 {
			operation, ok = seccomp.BitsNotSet, true
		}
		if !ok {
			return nil, errors.New("the profile compares in a way that is not known: " + string(arg.Op))
		}
		conditions = append(conditions,
			seccomp.Condition{Argument: uint32(arg.Index), Operation: operation, Value: arg.Value})
	}
	return conditions, nil
}
