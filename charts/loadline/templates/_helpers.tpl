{{/* Objects of this chart are those of manifests/, changed by values. Arguments are dicts:
     root        the chart's $
     folder      below manifests/
     home        the namespace that the files name, which becomes that of the release
     component   the values of the component
     container   the container of the program, beside loadlined */}}

{{- define "loadline.objects" -}}
{{- $a := . -}}
{{- range $path, $_ := $a.root.Files.Glob (printf "manifests/%s/*.yaml" $a.folder) }}
{{- range $text := regexSplit "(?m)^---\\s*$" ($a.root.Files.Get $path) -1 }}
{{- $object := fromYaml $text }}
{{- if hasKey $object "Error" }}{{ fail (printf "%s: %s" $path $object.Error) }}{{ end }}
{{- if and $object (include "loadline.wanted" (dict "a" $a "object" $object)) }}
---
{{ include "loadline.changed" (dict "a" $a "object" $object) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* "yes" unless the object is none of a release's: its namespace, what Helm is asked to leave out, what another template
     makes. */}}
{{- define "loadline.wanted" -}}
{{- $o := .object -}}
{{- $home := and (eq $o.kind "Namespace") (eq $o.metadata.name .a.home) -}}
{{- $policy := and (eq $o.kind "NetworkPolicy") (not .a.root.Values.networkPolicies) -}}
{{- $kinds := .a.kinds | default list -}}
{{- $other := and $kinds (not (has $o.kind $kinds)) -}}
{{- if not (or $home $policy $other) }}yes{{ end -}}
{{- end -}}

{{- define "loadline.changed" -}}
{{- $a := .a -}}
{{- $o := .object -}}
{{- $release := $a.root.Release.Namespace -}}
{{- $m := $o.metadata -}}
{{- if eq ($m.namespace | default "") $a.home }}{{ $_ := set $m "namespace" $release }}{{ end -}}
{{- range $o.subjects | default list }}
{{- if eq (.namespace | default "") $a.home }}{{ $_ := set . "namespace" $release }}{{ end -}}
{{- end -}}
{{- $labels := $m.labels | default dict -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $a.root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/instance" $a.root.Release.Name -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $a.root.Chart.Name $a.root.Chart.Version | replace "+" "_") -}}
{{- if has $o.kind (list "ServiceMonitor" "PrometheusRule") }}
{{- $labels = merge $labels $a.root.Values.monitoring.labels }}
{{- end -}}
{{- $_ := set $m "labels" $labels -}}
{{- if $o.spec }}{{ if $o.spec.template }}{{ include "loadline.workload" (dict "a" $a "object" $o) }}{{ end }}{{ end -}}
{{- if and (eq $o.kind "ConfigMap") $a.config }}{{ $_ := set $o "data" (include $a.config $a | fromYaml) }}{{ end -}}
{{- toYaml $o -}}
{{- end -}}

{{/* Changes a Deployment or DaemonSet in place, and returns nothing. */}}
{{- define "loadline.workload" -}}
{{- $a := .a -}}
{{- $c := $a.component -}}
{{- $spec := .object.spec -}}
{{- $template := $spec.template -}}
{{- $pod := $template.spec -}}
{{- if not (kindIs "invalid" $c.replicas) }}{{ $_ := set $spec "replicas" ($c.replicas | int) }}{{ end -}}
{{- $annotations := merge (dict) $c.podAnnotations ($template.metadata.annotations | default dict) -}}
{{- if $a.config }}
{{- $_ := set $annotations "checksum/config" (include $a.config $a | sha256sum) }}
{{- end -}}
{{- if $annotations }}{{ $_ := set $template.metadata "annotations" $annotations }}{{ end -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}
{{- with get $c $key }}{{ $_ := set $pod $key . }}{{ end -}}
{{- end -}}
{{- with $a.root.Values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- range $one := concat ($pod.initContainers | default list) $pod.containers }}
{{- $_ := set $one "image" (include "loadline.image" (dict "root" $a.root "image" $one.image)) -}}
{{- with $a.root.Values.image.pullPolicy }}{{ $_ := set $one "imagePullPolicy" . }}{{ end -}}
{{- $engine := eq $one.name "loadlined" -}}
{{- with ternary $c.engineResources $c.resources $engine }}{{ $_ := set $one "resources" . }}{{ end -}}
{{- with ternary $c.engineArgs (concat ($a.args | default list) $c.extraArgs) $engine }}
{{- $_ := set $one "args" (concat (include "loadline.args" (dict "args" $one.args "without" $a.without) | fromYamlArray) .) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments of a container but for those that begin with `without`. */}}
{{- define "loadline.args" -}}
{{- $kept := list -}}
{{- $without := .without | default "-none-" -}}
{{- range .args }}{{ if not (hasPrefix $without .) }}{{ $kept = append $kept . }}{{ end }}{{ end -}}
{{- toYaml $kept -}}
{{- end -}}

{{- define "loadline.image" -}}
{{- $program := .image | splitList ":" | first | splitList "/" | last -}}
{{- $v := .root.Values.image -}}
{{- $kubernetes := .root.Values.scheduler.kubernetes | default "1.36" -}}
{{- if and (eq $program "loadline-scheduler") (ne $kubernetes "1.36") }}{{ $program = printf "%s-%s" $program $kubernetes }}{{ end -}}
{{- $tag := $v.tag | default (printf "v%s" .root.Chart.AppVersion) -}}
{{- printf "%s/%s:%s" $v.registry $program $tag -}}
{{- with get $v.digests $program }}{{ printf "@%s" . }}{{ end -}}
{{- end -}}
