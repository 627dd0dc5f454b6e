{{/* Objects of this chart are those of manifests/, changed by values. Arguments are dicts:
     root        the chart's $
     folder      below manifests/
     home        the namespace that the files name, which becomes that of the release
     component   the values of the component
     container   the container of the program, beside loadlined
     patch       a file of manifests/ that adds items to lists of this container
     rules       further rules of ClusterRoles, by their names */}}

{{/* What names of objects begin with: "loadline", unless values say otherwise. Labels and whatever refers to an object by its
     name follow. */}}
{{- define "loadline.fullname" -}}
{{- $v := .Values -}}
{{- $name := "loadline" -}}
{{- if $v.fullnameOverride }}{{ $name = $v.fullnameOverride }}
{{- else if $v.nameOverride }}
{{- $name = contains $v.nameOverride .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $v.nameOverride) }}
{{- end -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* A file of manifests/ with the names of this release. Images, paths and the ConfigMaps of usage, which the programs
     know by name, stay: they follow "/", or go on with a number. */}}
{{- define "loadline.file" -}}
{{- $text := .root.Files.Get .path -}}
{{- $name := include "loadline.fullname" .root -}}
{{- if ne $name "loadline" }}
{{- $text = regexReplaceAll "(^|[^/\\w.-])loadline-(scheduler|autoscaler|gateway|expander|prices|cloud)" $text (printf "${1}%s-${2}" $name) }}
{{- $text = regexReplaceAll "(^|[^/\\w.-])loadline-usage([^-]|$)" $text (printf "${1}%s-usage${2}" $name) }}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* The accounts that values name, by the names that manifests/ has for them. */}}
{{- define "loadline.accounts" -}}
{{- $v := .Values -}}
{{- $name := include "loadline.fullname" . -}}
{{- $accounts := dict -}}
{{- range $component, $in := dict "scheduler" "scheduler" "extender" "gateway" "expander" "expander" "autoscaler" "autoscaler" "usage" "usage" }}
{{- with (get $v $component).serviceAccount.name }}{{ $_ := set $accounts (printf "%s-%s" $name $in) . }}{{ end -}}
{{- end -}}
{{- toYaml $accounts -}}
{{- end -}}

{{/* Labels of objects that no file of manifests/ has. */}}
{{- define "loadline.labels" -}}
{{- $labels := dict "app.kubernetes.io/part-of" "loadline" "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/instance" .Release.Name -}}
{{- toYaml (merge $labels .Values.labels) -}}
{{- end -}}

{{- define "loadline.objects" -}}
{{- $a := . -}}
{{- range $path, $_ := $a.root.Files.Glob (printf "manifests/%s/*.yaml" $a.folder) }}
{{- range $text := regexSplit "(?m)^---\\s*$" (include "loadline.file" (dict "root" $a.root "path" $path)) -1 }}
{{- $object := fromYaml $text }}
{{- if hasKey $object "Error" }}{{ fail (printf "%s: %s" $path $object.Error) }}{{ end }}
{{- if include "loadline.isEmpty" $object }}
{{- $resource := eq $object.kind "Lease" | ternary "leases" "configmaps" }}
{{- $new := get ($a.renamed | default dict) (printf "%s %s" $resource $object.metadata.name) }}
{{- if $new }}{{ $_ := set $object.metadata "name" $new }}{{ end }}
{{- end }}
{{- if and $object (include "loadline.wanted" (dict "a" $a "object" $object)) }}
---
{{ include "loadline.changed" (dict "a" $a "object" $object) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* "yes" unless the object is none of a release's: its namespace, what Helm is asked to leave out, what another template
     or release makes. */}}
{{- define "loadline.wanted" -}}
{{- $o := .object -}}
{{- $home := and (eq $o.kind "Namespace") (eq $o.metadata.name .a.home) -}}
{{- $policy := and (eq $o.kind "NetworkPolicy") (not .a.root.Values.networkPolicies) -}}
{{- $kinds := .a.kinds | default list -}}
{{- $other := and $kinds (not (has $o.kind $kinds)) -}}
{{- $account := and (eq $o.kind "ServiceAccount") (not .a.component.serviceAccount.create) -}}
{{- $slack := and (has $o.kind (list "Namespace" "ResourceQuota" "PriorityClass")) (eq (get .a.component "createSlackNamespace" | toString) "false") -}}
{{- $theirs := include "loadline.isTheirs" . -}}
{{- if not (or $home $policy $other $account $slack $theirs) }}yes{{ end -}}
{{- end -}}

{{/* "yes" for an object without content, which a program fills. */}}
{{- define "loadline.isEmpty" -}}
{{- $kind := .kind | default "" -}}
{{- if or (eq $kind "Lease") (and (eq $kind "ConfigMap") (not .data)) }}yes{{ end -}}
{{- end -}}

{{/* "yes" for an object without content that is there and of no release: the program of an earlier version has made it,
     and Helm refuses to take it over. */}}
{{- define "loadline.isTheirs" -}}
{{- $o := .object -}}
{{- $m := $o.metadata -}}
{{- if include "loadline.isEmpty" $o }}
{{- $namespace := eq $m.namespace .a.home | ternary .a.root.Release.Namespace $m.namespace -}}
{{- with lookup $o.apiVersion $o.kind $namespace $m.name }}
{{- if not (hasKey (.metadata.annotations | default dict) "meta.helm.sh/release-name") }}yes{{ end }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "loadline.changed" -}}
{{- $a := .a -}}
{{- $o := .object -}}
{{- $release := $a.root.Release.Namespace -}}
{{- $m := $o.metadata -}}
{{- $accounts := include "loadline.accounts" $a.root | fromYaml -}}
{{- if eq ($m.namespace | default "") $a.home }}{{ $_ := set $m "namespace" $release }}{{ end -}}
{{- range $o.subjects | default list }}
{{- if eq (.namespace | default "") $a.home }}{{ $_ := set . "namespace" $release }}{{ end -}}
{{- if eq .kind "ServiceAccount" }}{{ $_ := set . "name" (get $accounts .name | default .name) }}{{ end -}}
{{- end -}}
{{- if $a.renamed }}
{{- $_ := set $m "name" (get $a.renamed (printf "%ss %s" (lower $o.kind) $m.name) | default $m.name) }}
{{- include "loadline.renamed" (dict "names" $a.renamed "rules" ($o.rules | default list)) }}
{{- end -}}
{{- if and (eq $o.kind "ClusterRole") $a.rules }}
{{- with get $a.rules $m.name }}{{ $_ := set $o "rules" (concat $o.rules .) }}{{ end -}}
{{- end -}}
{{- if eq $o.kind "ServiceAccount" }}
{{- $_ := set $m "name" (get $accounts $m.name | default $m.name) }}
{{- with $a.component.serviceAccount.annotations }}{{ $_ := set $m "annotations" . }}{{ end -}}
{{- end -}}
{{- $labels := $m.labels | default dict -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $a.root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/instance" $a.root.Release.Name -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $a.root.Chart.Name $a.root.Chart.Version | replace "+" "_") -}}
{{- if has $o.kind (list "PodMonitor" "ServiceMonitor" "PrometheusRule") }}
{{- $labels = merge $labels $a.root.Values.monitoring.labels }}
{{- end -}}
{{- $_ := set $m "labels" (merge $labels $a.root.Values.labels) -}}
{{- if $o.spec }}{{ if $o.spec.template }}{{ include "loadline.workload" (dict "a" $a "object" $o) }}{{ end }}{{ end -}}
{{- if and (eq $o.kind "ConfigMap") $o.data $a.config }}{{ $_ := set $o "data" (include $a.config $a | fromYaml) }}{{ end -}}
{{- toYaml $o -}}
{{- end -}}

{{/* Changes the names of objects in the rules of a role in place, and returns nothing. `names` are new ones by resource
     and name, such as "leases loadline-autoscaler". */}}
{{- define "loadline.renamed" -}}
{{- $names := .names -}}
{{- range $rule := .rules }}
{{- if $rule.resourceNames }}
{{- $all := list }}
{{- range $name := $rule.resourceNames }}
{{- $all = append $all (get $names (printf "%s %s" (first $rule.resources) $name) | default $name) }}
{{- end }}
{{- $_ := set $rule "resourceNames" $all }}
{{- end }}
{{- end }}
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
{{- with $c.podLabels }}{{ $_ := set $template.metadata "labels" (merge (dict) $template.metadata.labels .) }}{{ end -}}
{{- with $c.serviceAccount.name }}{{ $_ := set $pod "serviceAccountName" . }}{{ end -}}
{{- with $c.extraVolumes }}{{ $_ := set $pod "volumes" (concat ($pod.volumes | default list) .) }}{{ end -}}
{{- with $c.topologySpreadConstraints }}
{{- $spread := list }}
{{- range . }}{{ $spread = append $spread (merge (dict) . (dict "labelSelector" $spec.selector)) }}{{ end }}
{{- $_ := set $pod "topologySpreadConstraints" $spread }}
{{- end -}}
{{- if and $c.nodeSelector $pod.affinity }}{{ $_ := unset $pod.affinity "nodeAffinity" }}{{ end -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with get $c $key }}{{ $_ := set $pod $key . }}{{ end -}}
{{- end -}}
{{- with $a.root.Values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- range $one := concat ($pod.initContainers | default list) $pod.containers }}
{{- $_ := set $one "image" (include "loadline.image" (dict "root" $a.root "image" $one.image)) -}}
{{- with $a.root.Values.image.pullPolicy }}{{ $_ := set $one "imagePullPolicy" . }}{{ end -}}
{{- $engine := eq $one.name "loadlined" -}}
{{- if not $engine }}
{{- with $c.extraEnv }}{{ $_ := set $one "env" (concat ($one.env | default list) .) }}{{ end -}}
{{- with $c.extraVolumeMounts }}{{ $_ := set $one "volumeMounts" (concat ($one.volumeMounts | default list) .) }}{{ end -}}
{{- end -}}
{{- if and $a.patch (not $engine) }}
{{- range include "loadline.file" (dict "root" $a.root "path" $a.patch) | fromYamlArray }}
{{- $list := regexFind "[a-z]+/-$" .path | trimSuffix "/-" }}
{{- $_ := set $one $list (append (get $one $list) .value) }}
{{- end -}}
{{- end -}}
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
{{- if not $v.registry }}
{{- fail "image.registry is empty: name the registry that has Loadline's images, as in --set image.registry=registry.example/loadline. None are published; `make images` and `make push REGISTRY=registry.example/loadline` build and push them (docs/install.md)" }}
{{- end -}}
{{- printf "%s/%s:%s" $v.registry $program $tag -}}
{{- with get $v.digests $program }}{{ printf "@%s" . }}{{ end -}}
{{- end -}}
