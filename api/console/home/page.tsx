import { useExecutions } from '../executions/data.ts'
import { Skeleton } from '../kit/states.tsx'
import { useTeam } from '../shell/role.tsx'
import { FirstRun } from '../workflows/templates/first.tsx'
import { Overview } from './overview.tsx'

/** How the team's executions do; until there is one, the way to the first. */
export function HomePage() {
  const { teamId } = useTeam()
  const newest = useExecutions(teamId, { size: 6 })
  if (!newest.data && !newest.error) return <Skeleton />
  return newest.data?.totalElements === 0 ? <FirstRun /> : <Overview newest={newest} />
}
