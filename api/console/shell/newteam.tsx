import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { Refused } from '../kit/states.tsx'
import { useSend } from '../kit/work.ts'
import { createTeam } from '../people/data.ts'

/** The page of a user without a team: everything belongs to one. */
export function NewTeam({ onMade }: { onMade: (teamId: string) => void }) {
  const [name, setName] = useState('')
  const { error, busy, onSubmit } = useSend(async () => {
    const team = await createTeam(name)
    notify(`The team ${team.name} is yours`)
    onMade(team.id)
  })
  const wrong = problemAt(error, 'name')
  return (
    <>
      <PageHeader
        title="Create a team"
        lead="Workflows, executions and credentials belong to a team. Create one, or ask an ADMIN of a team to add you."
      />
      <form className="stack narrow" onSubmit={onSubmit}>
        <Field label="Name" required error={wrong}>
          <TextInput value={name} maxLength={200} onChange={setName} />
        </Field>
        {!wrong && <Refused error={error} />}
        <Button type="submit" look="primary" busy={busy}>
          Create team
        </Button>
      </form>
    </>
  )
}
