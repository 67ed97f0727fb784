import { useState } from 'react'
import { useCredentials } from '../credentials/data.ts'
import { problemAt } from '../data/refusal.ts'
import { Field } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput, Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { useTeam } from '../shell/role.tsx'
import { type Forwarder, saveForwarder } from './data.ts'

const TYPES = [
  { value: 'HTTPS', label: 'HTTPS – a POST of a JSON array' },
  { value: 'SYSLOG', label: 'Syslog over TLS – RFC 5424' },
]

type DialogProps = { forwarder: Forwarder | null; onClose: () => void }

/** Creates or changes a forwarder; each type has its own fields. */
export function ForwarderDialog({ forwarder, onClose }: DialogProps) {
  const { teamId } = useTeam()
  const credentials = useCredentials(teamId)
  const [name, setName] = useState(forwarder?.name ?? '')
  const [type, setType] = useState<string>(forwarder?.type ?? 'HTTPS')
  const [url, setUrl] = useState(forwarder?.url ?? '')
  const [credentialId, setCredentialId] = useState(forwarder?.credentialId ?? '')
  const [host, setHost] = useState(forwarder?.host ?? '')
  const [port, setPort] = useState<number | undefined>(forwarder?.port ?? 6514)
  const [certificate, setCertificate] = useState(forwarder?.caCertificate ?? '')
  const [all, setAll] = useState(false)
  const isSyslog = type === 'SYSLOG'
  const send = async () => {
    const nothing = { host: null, port: null, caCertificate: null, url: null, credentialId: null }
    const own = isSyslog
      ? { host, port: port ?? null, caCertificate: certificate || null }
      : { url, credentialId: credentialId || null }
    await saveForwarder(teamId, forwarder?.id ?? null, {
      ...nothing,
      ...own,
      name,
      type: isSyslog ? 'SYSLOG' : 'HTTPS',
      enabled: forwarder?.enabled ?? true,
      ...(all ? { after: 0 } : {}),
    })
    notify(forwarder ? 'Forwarder saved' : 'Forwarder created')
  }
  const http = (credentials.data ?? []).filter((one) => one.type.startsWith('HTTP') || one.type === 'OAUTH2')
  return (
    <FormDialog
      open
      onClose={onClose}
      title={forwarder ? `Edit ${forwarder.name}` : 'New forwarder'}
      label={forwarder ? 'Save' : 'Create'}
      wide
      onSubmit={send}
      fields={['name', 'type', 'url', 'credentialId', 'host', 'port', 'caCertificate']}
    >
      {(error) => (
        <div className="stack">
          <Field label="Name" required error={problemAt(error, 'name')}>
            <TextInput value={name} maxLength={100} onChange={setName} />
          </Field>
          <Field label="Type" error={problemAt(error, 'type')}>
            <Select value={type} onChange={setType} choices={TYPES} />
          </Field>
          {isSyslog ? (
            <>
              <Field label="Host" required error={problemAt(error, 'host')}>
                <TextInput value={host} maxLength={255} spellCheck={false} onChange={setHost} />
              </Field>
              <Field label="Port" error={problemAt(error, 'port')}>
                <NumberInput value={port} min={1} max={65_535} step={1} onChange={setPort} />
              </Field>
              <Field
                label="Certificate of its authority"
                help="PEM. Empty: the public authorities"
                error={problemAt(error, 'caCertificate')}
              >
                <TextArea code rows={4} value={certificate} maxLength={20_000} onChange={setCertificate} />
              </Field>
            </>
          ) : (
            <>
              <Field label="URL" required error={problemAt(error, 'url')}>
                <TextInput
                  value={url}
                  maxLength={2_000}
                  placeholder="https://siem.example.com/ingest"
                  spellCheck={false}
                  onChange={setUrl}
                />
              </Field>
              <Field
                label="Credential"
                help="What the requests are signed in with"
                error={problemAt(error, 'credentialId')}
              >
                <Select
                  value={credentialId}
                  onChange={setCredentialId}
                  empty="None"
                  choices={http.map((one) => ({ value: one.id, label: `${one.name} (${one.type})` }))}
                />
              </Field>
            </>
          )}
          <Checkbox checked={all} onChange={setAll}>
            {forwarder
              ? 'Send all entries again, from the first one'
              : 'Send the entries that there are already too'}
          </Checkbox>
        </div>
      )}
    </FormDialog>
  )
}
