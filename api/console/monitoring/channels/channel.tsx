import { useState } from 'react'
import { useCredentials } from '../../credentials/data.ts'
import { problemAt } from '../../data/refusal.ts'
import { Button } from '../../kit/controls/button.tsx'
import { CopyButton } from '../../kit/controls/copy.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { Select, TextArea, TextInput } from '../../kit/controls/input.tsx'
import { Dialog } from '../../kit/overlays/dialog.tsx'
import { ManagedForm } from '../../kit/tables/managedform.tsx'
import { CHANNEL_TYPES, type Channel, createChannel, updateChannel } from './data.ts'

type ChannelKind = Channel['type']
type DialogProps = {
  teamId: string
  channel: Channel | null
  onClose: () => void
  /** Called with the secret of a new webhook, or of one whose URL is another one. */
  onSecret: (secret: string) => void
}

/** Makes or changes a channel; its type stays. */
export function ChannelDialog({ teamId, channel, onClose, onSecret }: DialogProps) {
  const config = channel?.config
  const mail = config && 'recipients' in config ? config : null
  const [type, setType] = useState<ChannelKind>(channel?.type ?? 'EMAIL')
  const [recipients, setRecipients] = useState(mail?.recipients.join('\n') ?? '')
  const [credentialId, setCredentialId] = useState(mail?.credentialId ?? '')
  const [url, setUrl] = useState(config && 'url' in config ? config.url : '')
  const { data: credentials = [] } = useCredentials(teamId)
  const servers = credentials.filter((one) => one.type === 'SMTP')

  const save = async (name: string) => {
    const list = recipients.split(/[\s,]+/).filter(Boolean)
    const wanted = type === 'EMAIL' ? { recipients: list, credentialId: credentialId || null } : { url }
    const saved = channel
      ? await updateChannel(channel, { name, config: wanted })
      : await createChannel(teamId, { name, type, config: wanted })
    if (saved.secret) onSecret(saved.secret)
  }

  return (
    <ManagedForm
      noun="channel"
      thing={channel}
      onClose={onClose}
      save={save}
      fields={['config.url', 'config.credentialId']}
    >
      {(error) => (
        <>
          <Field label="Type">
            <Select
              value={type}
              disabled={channel !== null}
              onChange={(next) => setType(next as ChannelKind)}
              choices={Object.entries(CHANNEL_TYPES).map(([value, label]) => ({ value, label }))}
            />
          </Field>
          {type === 'EMAIL' ? (
            <>
              <Field label="Recipients" help="One a line; each gets a mail of their own.">
                <TextArea value={recipients} onChange={setRecipients} rows={3} />
              </Field>
              <Field label="Mail server" error={problemAt(error, 'config.credentialId')}>
                <Select
                  value={credentialId}
                  onChange={setCredentialId}
                  empty="The service's own"
                  choices={servers.map((one) => ({ value: one.id, label: one.name }))}
                />
              </Field>
            </>
          ) : (
            <Field
              label="URL"
              required
              help={
                type === 'SLACK'
                  ? 'Of an incoming webhook. It is kept as a secret.'
                  : 'Requests are signed by the Standard Webhooks; another URL gets a new secret. The path is kept as a secret.'
              }
              error={problemAt(error, 'config.url')}
            >
              <TextInput value={url} onChange={setUrl} required maxLength={2_000} />
            </Field>
          )}
        </>
      )}
    </ManagedForm>
  )
}

/** Shows what a webhook is signed with: once. */
export function SecretDialog({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title="The secret of the webhook">
      <div className="stack">
        <p>Copy it now: it is not shown again. The receiver checks with it that requests come from here.</p>
        <div className="row">
          <code>{secret}</code>
          <CopyButton text={secret} label="Copy the secret" />
        </div>
        <div className="actions">
          <Button onClick={onClose}>I have copied it</Button>
        </div>
      </div>
    </Dialog>
  )
}
