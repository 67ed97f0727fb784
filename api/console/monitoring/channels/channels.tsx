import { useState } from 'react'
import { tellError } from '../../data/refusal.ts'
import { Button } from '../../kit/controls/button.tsx'
import { useConfirm } from '../../kit/overlays/confirm.tsx'
import type { MenuItem } from '../../kit/overlays/menu.tsx'
import { Loaded } from '../../kit/states.tsx'
import { Pill } from '../../kit/status.tsx'
import { Managed } from '../../kit/tables/managed.tsx'
import { useWork } from '../../kit/work.ts'
import { useRole, useTeam } from '../../shell/role.tsx'
import { MissingYes } from '../missingyes.tsx'
import { ChannelDialog, SecretDialog } from './channel.tsx'
import {
  type Channel,
  deleteChannel,
  rotateChannelSecret,
  CHANNEL_TYPES as TYPES,
  testChannel,
  updateChannel,
  useChannels,
} from './data.ts'
import { Deliveries } from './deliveries.tsx'

/** Where alerts are told: mail, Slack, webhooks; and what was sent. */
export function ChannelsView() {
  const { teamId } = useTeam()
  const mayChange = useRole()('ADMIN')
  const confirm = useConfirm()
  const found = useChannels(teamId)
  const [edited, setEdited] = useState<Channel | 'new' | null>(null)
  const [secret, setSecret] = useState<string | null>(null)

  const rotate = (channel: Channel) =>
    confirm({
      title: `Give ${channel.name} another secret?`,
      text: 'For a day requests are signed with both, so that the receiver can change.',
      label: 'Make a new secret',
      work: async () => setSecret((await rotateChannelSecret(channel)).secret),
    })
  const remove = (channel: Channel) =>
    confirm({
      title: `Delete ${channel.name}?`,
      text: 'Alerts do not go there any more, and what waits to be sent to it fails. This cannot be undone.',
      label: 'Delete the channel',
      danger: true,
      work: () => deleteChannel(channel),
    })
  const itemsOf = (channel: Channel): MenuItem[] => [
    { label: 'Edit', icon: 'edit', onClick: () => setEdited(channel) },
    ...(channel.type === 'WEBHOOK'
      ? [{ label: 'New secret', icon: 'refresh' as const, onClick: () => rotate(channel) }]
      : []),
    { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(channel) },
  ]

  return (
    <div className="stack">
      <Loaded query={found} rows={3}>
        {(channels) => (
          <Managed
            label="Channels"
            rows={channels}
            mayChange={mayChange}
            empty={{
              title: 'No channels',
              text: 'Alerts go to a channel once the settings, or a playbook, name it.',
            }}
            add={{ label: 'New channel', onClick: () => setEdited('new') }}
            columns={[
              {
                heading: 'Channel',
                cell: (channel) => (
                  <>
                    <span className="name">{channel.name}</span>
                    <div className="quiet said">{tellTarget(channel)}</div>
                    <MissingYes states={channel.recipientStates} held={channel.held} />
                  </>
                ),
              },
              { heading: 'Type', cell: ({ type }) => TYPES[type] },
              mayChange && {
                heading: 'Test',
                cell: (channel) => <Test channel={channel} />,
              },
            ]}
            onOff={{
              heading: 'Enabled',
              verb: 'Tell',
              isOn: ({ enabled }) => enabled,
              change: (channel, enabled) => updateChannel(channel, { enabled }),
              said: ({ name }, on) => (on ? `${name} is told from now on` : `${name} is not told any more`),
            }}
            menu={itemsOf}
          />
        )}
      </Loaded>
      <Deliveries />
      {edited && (
        <ChannelDialog
          key={edited === 'new' ? 'new' : edited.id}
          teamId={teamId}
          channel={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
          onSecret={setSecret}
        />
      )}
      {secret !== null && <SecretDialog secret={secret} onClose={() => setSecret(null)} />}
    </div>
  )
}

/** Sends a test, and says whether it was taken. */
function Test({ channel }: { channel: Channel }) {
  const { busy, result, error, run } = useWork<Awaited<ReturnType<typeof testChannel>>>()
  return (
    <>
      <Button
        small
        aria-label={`Test ${channel.name}`}
        busy={busy}
        onClick={() => run(() => testChannel(channel))}
      >
        Test
      </Button>
      <div role="status">
        {result && <Outcome fine={result.status === 'SUCCESS'} message={result.message} />}
        {error != null && <Outcome fine={false} message={tellError(error)} />}
      </div>
    </>
  )
}

function Outcome({ fine, message }: { fine: boolean; message: string }) {
  return (
    <>
      <Pill tone={fine ? 'good' : 'bad'}>{fine ? 'Taken' : 'Not taken'}</Pill>{' '}
      <span className="quiet said">{message}</span>
    </>
  )
}

function tellTarget({ config }: Channel): string {
  return 'url' in config ? config.url : config.recipients.join(', ')
}
