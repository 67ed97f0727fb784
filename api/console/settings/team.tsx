import { useState } from 'react'
import { Link } from 'wouter'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { NumberInput, TextArea, TextInput } from '../kit/controls/input.tsx'
import { Facts } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Loaded } from '../kit/states.tsx'
import { nameConstant, Pill } from '../kit/status.tsx'
import { Time } from '../kit/time.tsx'
import { createTeam, deleteTeam, updateTeam, useRateUse, useTeamDetail } from '../people/data.ts'
import { useRole, useTeam } from '../shell/role.tsx'
import { SettingsForm } from './form.tsx'

type Team = NonNullable<ReturnType<typeof useTeamDetail>['data']>

/** The team as every member sees it; its ADMINs change it. */
export function TeamSettings() {
  const { teamId } = useTeam()
  const may = useRole()
  const found = useTeamDetail(teamId)
  const [adds, setAdds] = useState(false)
  return (
    <div className="settings">
      <Loaded query={found} rows={4}>
        {(team) => (
          <>
            <Plan team={team} />
            {may('ADMIN') && (
              <>
                <Details key={team.id} team={team} />
                <Elsewhere />
                <Removal team={team} />
              </>
            )}
          </>
        )}
      </Loaded>
      <section className="panel stack" aria-label="Another team">
        <h2>Another team</h2>
        <p className="quiet">Workflows, executions and credentials of a team are its own.</p>
        <div className="row">
          <Button icon="plus" onClick={() => setAdds(true)}>
            New team
          </Button>
        </div>
      </section>
      {adds && <AnotherTeam onClose={() => setAdds(false)} />}
    </div>
  )
}

function Plan({ team }: { team: Team }) {
  const rate = useRateUse(team.id)
  const { limit, used } = rate.data ?? { limit: 0, used: 0 }
  return (
    <section className="panel stack" aria-label="Plan">
      <div className="row">
        <h2>Plan</h2>
        <Pill>{nameConstant(team.plan)}</Pill>
      </div>
      {rate.data && (
        <>
          <meter
            className="meter"
            aria-label="Requests in this minute"
            max={limit}
            high={limit * 0.9}
            value={Math.min(used, limit)}
          />
          <p>
            {used.toLocaleString()} of {limit.toLocaleString()} requests in this minute
            <span className="quiet">, of people and programs together</span>
          </p>
        </>
      )}
      <Facts
        facts={[
          ['Members', team.memberCount],
          ['Workflows', team.workflowCount],
          ['Credentials', team.credentialCount],
          ['Founded', <Time key="founded" at={team.createdAt} />],
          ['About it', team.description && <span className="said">{team.description}</span>],
        ]}
      />
    </section>
  )
}

function Details({ team }: { team: Team }) {
  const [name, setName] = useState(team.name)
  const [description, setDescription] = useState(team.description ?? '')
  const [days, setDays] = useState<number | undefined>(team.chatRetentionDays ?? undefined)
  const send = () =>
    updateTeam(team.id, { name, description: description || null, chatRetentionDays: days ?? null })
  return (
    <SettingsForm
      title="Team"
      label="Save team"
      done="Team saved"
      fields={['name', 'description', 'chatRetentionDays']}
      onSubmit={send}
    >
      {(error) => (
        <>
          <Field label="Name" required error={problemAt(error, 'name')}>
            <TextInput value={name} maxLength={200} onChange={setName} />
          </Field>
          <Field label="Description" error={problemAt(error, 'description')}>
            <TextArea value={description} maxLength={5_000} onChange={setDescription} />
          </Field>
          <Field
            label="Messages of chats are kept for"
            help="Days. Empty: until somebody deletes them"
            error={problemAt(error, 'chatRetentionDays')}
          >
            <NumberInput value={days} min={1} step={1} onChange={setDays} />
          </Field>
        </>
      )}
    </SettingsForm>
  )
}

function Elsewhere() {
  return (
    <nav className="panel stack" aria-label="More settings of the team">
      <h2>More of this team</h2>
      <ul>
        <li>
          <Link href="/tokens">Observability SDK</Link>
          <span className="quiet">: tokens for programs, and where these send their traces</span>
        </li>
        <li>
          <Link href="/members">Members</Link>
          <span className="quiet">: who works here, and what they may do</span>
        </li>
        <li>
          <Link href="/audit?tab=retention">Retention of the audit</Link>
          <span className="quiet">: for how long entries and reports are kept</span>
        </li>
      </ul>
    </nav>
  )
}

function Removal({ team: { id, name } }: { team: Team }) {
  const confirm = useConfirm()
  const remove = () =>
    confirm({
      title: `Delete the team ${name}?`,
      text: 'Its workflows, executions, credentials, tokens and memberships are gone for good, and what runs is ended.',
      label: 'Delete this team',
      danger: true,
      work: async () => {
        await deleteTeam(id)
        notify('Team deleted')
      },
    })
  return (
    <section className="panel stack" aria-label="Delete the team">
      <h2>Delete the team</h2>
      <p className="quiet">Everything in it goes with it.</p>
      <div className="row">
        <Button look="danger" icon="trash" onClick={remove}>
          Delete team
        </Button>
      </div>
    </section>
  )
}

function AnotherTeam({ onClose }: { onClose: () => void }) {
  const { choose } = useTeam()
  const [name, setName] = useState('')
  const send = async () => {
    const team = await createTeam(name)
    notify(`The team ${team.name} is yours`)
    choose(team.id)
  }
  return (
    <FormDialog open onClose={onClose} title="New team" label="Create team" onSubmit={send} fields={['name']}>
      {(error) => (
        <Field label="Name" required error={problemAt(error, 'name')}>
          <TextInput value={name} maxLength={200} onChange={setName} />
        </Field>
      )}
    </FormDialog>
  )
}
