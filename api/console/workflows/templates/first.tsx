import { Link } from 'wouter'
import { LinkButton } from '../../kit/controls/button.tsx'
import { PageHeader } from '../../kit/header.tsx'
import { Empty } from '../../kit/states.tsx'
import { useRole, useTeam } from '../../shell/role.tsx'
import { useWorkflows } from '../data.ts'
import { TemplateChoices } from './choices.tsx'

/** What a team sees that has executed nothing yet: the shortest way to a first execution. */
export function FirstRun() {
  const { teamId, teamName } = useTeam()
  const may = useRole()
  const { data } = useWorkflows(teamId, { size: 5 })
  const known = data?.content ?? []
  return (
    <div className="welcome">
      <PageHeader title={`Welcome to ${teamName}`}>
        {may('BUILDER') && (
          <>
            <LinkButton href="/workflows/import" icon="upload">
              Import from n8n
            </LinkButton>
            <LinkButton href="/workflows/new" icon="plus">
              Empty canvas
            </LinkButton>
          </>
        )}
      </PageHeader>
      {may('BUILDER') ? (
        <>
          <ol className="steps" aria-label="From here to a first execution">
            <li>Choose a template</li>
            <li>Watch it run, live</li>
            <li>Make it yours on the canvas</li>
          </ol>
          <TemplateChoices />
        </>
      ) : (
        <Empty
          title="Nothing has run yet"
          text="A BUILDER or an ADMIN of this team makes its workflows. What they run shows here."
        />
      )}
      {known.length > 0 && (
        <p className="quiet">
          Or open what is there:{' '}
          {known.map(({ id, name }, at) => (
            <span key={id}>
              {at > 0 && ', '}
              <Link className="name" href={`/workflows/${id}`}>
                {name}
              </Link>
            </span>
          ))}
        </p>
      )}
    </div>
  )
}
