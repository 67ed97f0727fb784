import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { useConfirm } from '../../kit/overlays/confirm.tsx'
import { Loaded } from '../../kit/states.tsx'
import { nameConstant } from '../../kit/status.tsx'
import { Managed } from '../../kit/tables/managed.tsx'
import { useRole, useTeam } from '../../shell/role.tsx'
import { deletePlaybook, type Playbook, updatePlaybook, usePlaybooks } from './data.ts'
import { PlaybookDialog } from './playbook.tsx'
import { PlaybookRuns } from './playbookruns.tsx'

/** What the team does by itself about its alerts. */
export function PlaybooksView() {
  const { teamId } = useTeam()
  const mayChange = useRole()('ADMIN')
  const confirm = useConfirm()
  const found = usePlaybooks(teamId)
  const [edited, setEdited] = useState<Playbook | 'new' | null>(null)
  const [shown, setShown] = useState<Playbook | null>(null)

  const remove = (playbook: Playbook) =>
    confirm({
      title: `Delete ${playbook.name}?`,
      text: 'Its runs are deleted with it, and those under way stop. This cannot be undone.',
      label: 'Delete the playbook',
      danger: true,
      work: () => deletePlaybook(playbook),
    })
  return (
    <div className="stack">
      <Loaded query={found} rows={3}>
        {(playbooks) => (
          <Managed
            label="Playbooks"
            rows={playbooks}
            mayChange={mayChange}
            empty={{
              title: 'No playbooks',
              text: 'A playbook tells a channel, starts a workflow or deactivates one when there is an alert.',
            }}
            add={{ label: 'New playbook', onClick: () => setEdited('new') }}
            columns={[
              {
                heading: 'Playbook',
                cell: (playbook) => (
                  <>
                    <span className="name">{playbook.name}</span>
                    <div className="quiet said">{tellConditions(playbook)}</div>
                  </>
                ),
              },
              {
                heading: 'Steps',
                cell: ({ steps }) => steps.map(({ type }) => nameConstant(type)).join(', then '),
              },
            ]}
            onOff={{
              heading: 'Enabled',
              verb: 'Run',
              isOn: ({ enabled }) => enabled,
              change: (playbook, enabled) => updatePlaybook(playbook, { enabled }),
              said: ({ name }, on) => (on ? `${name} runs from now on` : `${name} does not run any more`),
            }}
            act={(playbook) => (
              <Button small aria-label={`Runs of ${playbook.name}`} onClick={() => setShown(playbook)}>
                Runs
              </Button>
            )}
            menu={(playbook) => [
              { label: 'Edit', icon: 'edit', onClick: () => setEdited(playbook) },
              { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(playbook) },
            ]}
          />
        )}
      </Loaded>
      {edited && (
        <PlaybookDialog
          key={edited === 'new' ? 'new' : edited.id}
          teamId={teamId}
          playbook={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
        />
      )}
      {shown && <PlaybookRuns playbook={shown} onClose={() => setShown(null)} />}
    </div>
  )
}

function tellConditions({ on }: Playbook): string {
  const alerts = on.alertTypes.map(nameConstant).join(', ')
  return [
    alerts && `${alerts}, ${on.minSeverity.toLowerCase()} or worse`,
    on.evaluations && 'Evaluations that score too low',
    on.workflowIds && `of ${on.workflowIds.length} ${on.workflowIds.length === 1 ? 'workflow' : 'workflows'}`,
  ]
    .filter(Boolean)
    .join('; ')
}
