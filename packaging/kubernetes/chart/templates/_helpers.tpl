{{- define "vnettop-export.labels" -}}
app.kubernetes.io/name: vnettop-export
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "vnettop-export.address" -}}
{{- if eq .Values.listen "nodeIP" }}[$(NODE_IP)]{{ else if eq .Values.listen "loopback" }}127.0.0.1{{ end }}:{{ .Values.port }}
{{- end }}
{{- define "vnettop-export.image" -}}
{{- with .Values.image.digest }}{{ $.Values.image.repository }}@{{ . }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
