import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select, TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, Pill } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Time } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { addMember, changeRole, type Member, removeMember, useMembers } from './data.ts'

const ROLES: readonly { value: Member['role']; label: string }[] = [
  { value: 'OPERATOR', label: 'Operator – starts workflows, decides approvals' },
  { value: 'BUILDER', label: 'Builder – changes workflows and credentials too' },
  { value: 'ADMIN', label: 'Admin – everything, members and audit too' },
]

/** Who is in the team, and what they may do. */
export function MembersPage() {
  const may = useRole()
  const { teamId, teamName } = useTeam()
  const [adds, setAdds] = useState(false)
  if (!may('ADMIN')) {
    return (
      <>
        <PageHeader title="Members" />
        <Empty title="Not for your role" text="ADMINs of a team see its members." />
      </>
    )
  }
  return (
    <>
      <PageHeader title="Members" lead={`Who works in ${teamName}, and what they may do there.`}>
        <Button look="primary" icon="plus" onClick={() => setAdds(true)}>
          Add member
        </Button>
      </PageHeader>
      <MemberTable />
      {adds && <AddMember teamId={teamId} onClose={() => setAdds(false)} />}
    </>
  )
}

function MemberTable() {
  const { teamId, user } = useTeam()
  const found = useMembers(teamId)
  const [changes, setChanges] = useState<Member | null>(null)
  const confirm = useConfirm()
  const remove = (member: Member) => {
    const self = member.userId === user.id
    confirm({
      title: self ? 'Leave this team?' : 'Remove this member?',
      text: (
        <>
          <strong>{self ? 'You' : nameOf(member)}</strong> can do nothing here any more, and the SDK tokens
          that {self ? 'you' : 'they'} have made in the team are revoked.
        </>
      ),
      label: self ? 'Leave' : 'Remove',
      danger: true,
      work: async () => {
        await removeMember(teamId, member.userId)
        notify(self ? 'You have left the team' : 'Member removed')
      },
    })
  }
  return (
    <>
      <Loaded query={found} rows={3}>
        {(members) => (
          <Table
            label="Members"
            rows={members}
            keyOf={({ userId }) => userId}
            columns={[
              {
                heading: 'Name',
                cell: (member) => (
                  <>
                    <span className="name">{nameOf(member)}</span>{' '}
                    {member.userId === user.id && <Pill>You</Pill>}
                  </>
                ),
              },
              { heading: 'E-mail', cell: ({ email }) => <span className="said">{email}</span> },
              { heading: 'Role', cell: ({ role }) => nameConstant(role) },
              { heading: 'Joined', cell: ({ joinedAt }) => <Time at={joinedAt} /> },
              {
                heading: 'Actions',
                cell: (member) => (
                  <div className="row acts">
                    <Button
                      small
                      aria-label={`Change role of ${nameOf(member)}`}
                      onClick={() => setChanges(member)}
                    >
                      Change role
                    </Button>
                    <Button
                      small
                      aria-label={`${member.userId === user.id ? 'Leave as' : 'Remove'} ${nameOf(member)}`}
                      onClick={() => remove(member)}
                    >
                      {member.userId === user.id ? 'Leave' : 'Remove'}
                    </Button>
                  </div>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {changes && <ChangeRole teamId={teamId} member={changes} onClose={() => setChanges(null)} />}
    </>
  )
}

function nameOf({ firstName, lastName }: Pick<Member, 'firstName' | 'lastName'>): string {
  return `${firstName} ${lastName}`
}

function AddMember({ teamId, onClose }: { teamId: string; onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState('OPERATOR')
  const send = async () => {
    const member = await addMember(teamId, { email, role: readRole(role) })
    notify(`${nameOf(member)} is a member now`)
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Add a member"
      label="Add"
      onSubmit={send}
      fields={['email', 'role']}
    >
      {(error) => (
        <div className="stack">
          <Field
            label="E-mail"
            required
            help="Of their account here, which they must have confirmed"
            error={problemAt(error, 'email')}
          >
            <TextInput type="email" value={email} maxLength={320} onChange={setEmail} />
          </Field>
          <Field label="Role" error={problemAt(error, 'role')}>
            <Select value={role} onChange={setRole} choices={ROLES} />
          </Field>
        </div>
      )}
    </FormDialog>
  )
}

type ChangeProps = { teamId: string; member: Member; onClose: () => void }

function ChangeRole({ teamId, member, onClose }: ChangeProps) {
  const [role, setRole] = useState<string>(member.role)
  const send = async () => {
    await changeRole(teamId, member.userId, readRole(role))
    notify('Role changed')
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`The role of ${nameOf(member)}`}
      label="Change role"
      onSubmit={send}
    >
      <Field label="Role">
        <Select value={role} onChange={setRole} choices={ROLES} />
      </Field>
    </FormDialog>
  )
}

function readRole(text: string): Member['role'] {
  return ROLES.find(({ value }) => value === text)?.value ?? 'OPERATOR'
}
