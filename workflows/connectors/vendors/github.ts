import type { ActionSchema, Connector, ConnectorAction } from '../connector.ts'
import {
  choiceInput,
  flagInput,
  listInput,
  nameInput,
  recordInput,
  textInput,
  wholeNumberInput,
} from '../schemas.ts'
import { FILES_OF_GITHUB } from './githubfiles.ts'
import { given, labels, list, OF_REPO, REPO, repository, request } from './githubparts.ts'

type Shape = [Record<string, ActionSchema>, string[]]
/** An input that names a repository, and more of it. */
const of = (more: Record<string, ActionSchema> = {}, required = Object.keys(more)): Shape => [
  { ...repository, ...more },
  [...OF_REPO, ...required],
]

const issue = { issue: wholeNumberInput('Issue', 'The number of the issue.', { minimum: 1 }) }
const pull = { pull: wholeNumberInput('Pull request', 'The number of the pull request.', { minimum: 1 }) }
const release = { release: wholeNumberInput('Release', 'The id of the release.', { minimum: 1 }) }
const review = { review: wholeNumberInput('Review', 'The id of the review.', { minimum: 1 }) }
const workflow = {
  workflow: nameInput('Workflow', 'The workflow of GitHub Actions: its id, or its file name.'),
}
const said = { body: nameInput('Text', 'What is said, in Markdown.') }
const assignees = listInput(textInput('Login', 'A login.'), 'Assignees', 'The logins of those who do it.')
const STATES = choiceInput(['open', 'closed', 'all'], 'State', 'Which are read: open ones, unless it is set.')
const direction = choiceInput(['asc', 'desc'], 'Direction', 'The direction of the order.')

const issueFilters = {
  state: STATES,
  labels: textInput('Labels', 'Only those with these labels, with commas between them.'),
  assignee: textInput('Assignee', 'Only those of this login, none or *.'),
  creator: textInput('Creator', 'Only those that this login has made.'),
  mentioned: textInput('Mentioned', 'Only those that name this login.'),
  since: textInput('Changed since', 'Only those that were changed after this time.'),
  sort: choiceInput(['created', 'updated', 'comments'], 'Order', 'What they are ordered by.'),
  direction,
}
const pullFilters = {
  state: STATES,
  head: textInput('From', 'Only those of this branch, as owner:branch.'),
  base: textInput('Into', 'Only those into this branch.'),
  sort: choiceInput(
    ['created', 'updated', 'popularity', 'long-running'],
    'Order',
    'What they are ordered by.',
  ),
  direction,
}
const ISSUE = `${REPO}/issues/{{ $input.issue }}`
const PULL = `${REPO}/pulls/{{ $input.pull }}`
const RELEASE = `${REPO}/releases/{{ $input.release }}`
const ACTIONS = `${REPO}/actions/workflows`

const issueFields = {
  title: textInput('Title', 'What it is called.'),
  body: textInput('Text', 'What it says, in Markdown.'),
  labels,
  assignees,
}
const editFields = {
  ...issueFields,
  state: choiceInput(['open', 'closed'], 'State', 'Whether it is open.'),
  state_reason: choiceInput(['completed', 'not_planned', 'reopened'], 'Reason', 'Why its state changes.'),
}

const ISSUES: Record<string, ConnectorAction> = {
  createIssue: request(
    'ONCE',
    ['Create an issue', 'Opens an issue in a repository.'],
    of({ ...issueFields, title: nameInput('Title', 'What it is called.') }, ['title']),
    { method: 'POST', path: `${REPO}/issues`, bodyOf: Object.keys(issueFields) },
  ),
  getIssue: request('REPEATABLE', ['Get an issue', 'Reads an issue or a pull request.'], of(issue), {
    ...{ method: 'GET', path: ISSUE },
  }),
  editIssue: request(
    'REPEATABLE',
    ['Change an issue', 'Changes the named fields of an issue; the others stay.'],
    of({ ...issue, ...editFields }, ['issue']),
    { method: 'PATCH', path: ISSUE, bodyOf: Object.keys(editFields) },
  ),
  commentOnIssue: request(
    'ONCE',
    ['Comment on an issue', 'Adds a comment to an issue or a pull request.'],
    of({ ...issue, ...said }),
    { method: 'POST', path: `${ISSUE}/comments`, body: given('body') },
  ),
  editComment: request(
    'REPEATABLE',
    ['Change a comment', 'Changes the text of a comment.'],
    of({ comment: wholeNumberInput('Comment', 'The id of the comment.', { minimum: 1 }), ...said }),
    { method: 'PATCH', path: `${REPO}/issues/comments/{{ $input.comment }}`, body: given('body') },
  ),
  lockIssue: request(
    'REPEATABLE',
    ['Lock an issue', 'Lets nobody but those who may write comment on it.'],
    of(
      {
        ...issue,
        reason: choiceInput(['off-topic', 'too heated', 'resolved', 'spam'], 'Reason', 'Why it is locked.'),
      },
      ['issue'],
    ),
    { method: 'PUT', path: `${ISSUE}/lock`, body: { lock_reason: '{{ $input.reason }}' } },
  ),
  listIssues: list(
    ['List issues', 'Reads the issues of a repository, pull requests among them.'],
    of(issueFilters, []),
    `${REPO}/issues`,
    { query: given(...Object.keys(issueFilters)) },
  ),
}

const pullFields = {
  title: issueFields.title,
  body: issueFields.body,
  base: pullFilters.base,
  state: editFields.state,
}
const mergeFields = {
  merge_method: choiceInput(['merge', 'squash', 'rebase'], 'How', 'How it is merged.'),
  commit_title: textInput('Title', 'The first line of the commit.'),
  commit_message: textInput('Message', 'The rest of it.'),
  sha: textInput('Head', 'Merges only if this is its newest commit.'),
}
const newPull = {
  title: nameInput('Title', 'What it is called.'),
  head: nameInput('From', 'The branch with the changes, of another account as owner:branch.'),
  base: nameInput('Into', 'The branch that they go into.'),
  body: issueFields.body,
  draft: flagInput('Draft', 'It is a draft.'),
}
const newReview = {
  event: choiceInput(['APPROVE', 'REQUEST_CHANGES', 'COMMENT'], 'Judgement', 'What is said of the changes.'),
  body: issueFields.body,
  commit_id: textInput('Commit', 'The commit that it is about: the newest one, unless it is set.'),
}

const PULLS: Record<string, ConnectorAction> = {
  createPull: request(
    'ONCE',
    ['Create a pull request', 'Asks for a branch to be merged.'],
    of(newPull, ['title', 'head', 'base']),
    { method: 'POST', path: `${REPO}/pulls`, bodyOf: Object.keys(newPull) },
  ),
  getPull: request('REPEATABLE', ['Get a pull request', 'Reads a pull request.'], of(pull), {
    ...{ method: 'GET', path: PULL },
  }),
  editPull: request(
    'REPEATABLE',
    ['Change a pull request', 'Changes the named fields of a pull request; the others stay.'],
    of({ ...pull, ...pullFields }, ['pull']),
    { method: 'PATCH', path: PULL, bodyOf: Object.keys(pullFields) },
  ),
  mergePull: request(
    'ONCE',
    ['Merge a pull request', 'Merges a pull request.'],
    of({ ...pull, ...mergeFields }, ['pull']),
    { method: 'PUT', path: `${PULL}/merge`, bodyOf: Object.keys(mergeFields) },
  ),
  listPulls: list(
    ['List pull requests', 'Reads the pull requests of a repository.'],
    of(pullFilters, []),
    `${REPO}/pulls`,
    { query: given(...Object.keys(pullFilters)) },
  ),
  listReviews: list(['List reviews', 'Reads the reviews of a pull request.'], of(pull), `${PULL}/reviews`),
  getReview: request('REPEATABLE', ['Get a review', 'Reads a review.'], of({ ...pull, ...review }), {
    ...{ method: 'GET', path: `${PULL}/reviews/{{ $input.review }}` },
  }),
  createReview: request(
    'ONCE',
    ['Review a pull request', 'Says what is thought of the changes.'],
    of({ ...pull, ...newReview }, ['pull', 'event']),
    { method: 'POST', path: `${PULL}/reviews`, bodyOf: Object.keys(newReview) },
  ),
  editReview: request(
    'REPEATABLE',
    ['Change a review', 'Changes the text of a review.'],
    of({ ...pull, ...review, ...said }),
    { method: 'PUT', path: `${PULL}/reviews/{{ $input.review }}`, body: given('body') },
  ),
}

const releaseFields = {
  tag_name: textInput('Tag', 'The name of the tag.'),
  name: textInput('Name', 'What the release is called.'),
  body: textInput('Text', 'What is new in it, in Markdown.'),
  draft: flagInput('Draft', 'It is not published yet.'),
  prerelease: flagInput('Prerelease', 'It is not ready for use.'),
  target_commitish: textInput('Commit', 'The branch or the commit that a new tag is made of.'),
}

const RELEASES: Record<string, ConnectorAction> = {
  createRelease: request(
    'ONCE',
    ['Create a release', 'Makes a release of a tag.'],
    of({ ...releaseFields, tag_name: nameInput('Tag', 'The name of the tag.') }, ['tag_name']),
    { method: 'POST', path: `${REPO}/releases`, bodyOf: Object.keys(releaseFields) },
  ),
  getRelease: request('REPEATABLE', ['Get a release', 'Reads a release.'], of(release), {
    ...{ method: 'GET', path: RELEASE },
  }),
  editRelease: request(
    'REPEATABLE',
    ['Change a release', 'Changes the named fields of a release; the others stay.'],
    of({ ...release, ...releaseFields }, ['release']),
    { method: 'PATCH', path: RELEASE, bodyOf: Object.keys(releaseFields) },
  ),
  deleteRelease: {
    ...request('REPEATABLE', ['Delete a release', 'Deletes a release; its tag stays.'], of(release), {
      ...{ method: 'DELETE', path: RELEASE, done: [404] },
    }),
    result: '{{ {"id": $input.release, "deleted": true} }}',
  },
  listReleases: list(
    ['List releases', 'Reads the releases of a repository, the newest first.'],
    of(),
    `${REPO}/releases`,
  ),
}

const login = (title: string, what: string) => nameInput(title, what)
const user: Shape = [{ user: login('User', 'The login of the account.') }, ['user']]
const organization: Shape = [
  { organization: login('Organization', 'The name of the organization.') },
  ['organization'],
]
const read = (name: string, summary: string, path: string) =>
  request('REPEATABLE', [name, summary], of(), { method: 'GET', path: `${REPO}${path}` })
const userFilters = {
  ...issueFilters,
  filter: textInput('Which', 'assigned, created, mentioned, subscribed, repos or all.'),
}

const REPOSITORIES: Record<string, ConnectorAction> = {
  getRepository: read('Get a repository', 'Reads what GitHub says of a repository.', ''),
  getLicense: read('Get the licence', 'Reads the licence of a repository.', '/license'),
  listPopularPaths: read(
    'List popular pages',
    'Reads which pages were looked at most.',
    '/traffic/popular/paths',
  ),
  listReferrers: read('List referrers', 'Reads where visitors came from.', '/traffic/popular/referrers'),
  listUserRepositories: list(
    ['List repositories of a user', 'Reads the public repositories of an account.'],
    user,
    '/users/{{ $input.user }}/repos',
  ),
  listOrganizationRepositories: list(
    ['List repositories of an organization', 'Reads the repositories of an organization.'],
    organization,
    '/orgs/{{ $input.organization }}/repos',
  ),
  listMembers: list(
    ['List members', 'Reads the members of an organization.'],
    organization,
    '/orgs/{{ $input.organization }}/members',
  ),
  listOwnIssues: list(
    ['List own issues', 'Reads the issues of the account, over all repositories.'],
    [userFilters, []],
    '/issues',
    { query: given(...Object.keys(userFilters)) },
  ),
  invite: request(
    'ONCE',
    ['Invite to an organization', 'Invites a person by mail.'],
    [{ ...organization[0], email: nameInput('Address', 'The mail address.') }, ['organization', 'email']],
    { method: 'POST', path: '/orgs/{{ $input.organization }}/invitations', body: given('email') },
  ),
}

const WORKFLOWS: Record<string, ConnectorAction> = {
  listWorkflows: list(['List workflows', 'Reads the workflows of GitHub Actions.'], of(), ACTIONS, {
    ...{ items: '$item.workflows' },
  }),
  getWorkflow: request(
    'REPEATABLE',
    ['Get a workflow', 'Reads a workflow of GitHub Actions.'],
    of(workflow),
    {
      ...{ method: 'GET', path: `${ACTIONS}/{{ $input.workflow }}` },
    },
  ),
  dispatchWorkflow: request(
    'ONCE',
    ['Start a workflow', 'Starts a workflow of GitHub Actions.'],
    of(
      {
        ...workflow,
        ref: nameInput('Version', 'The branch or the tag.'),
        inputs: recordInput('Inputs', 'What the workflow is given.'),
      },
      ['workflow', 'ref'],
    ),
    { method: 'POST', path: `${ACTIONS}/{{ $input.workflow }}/dispatches`, body: given('ref', 'inputs') },
  ),
  enableWorkflow: request('REPEATABLE', ['Switch a workflow on', 'Lets a workflow start.'], of(workflow), {
    ...{ method: 'PUT', path: `${ACTIONS}/{{ $input.workflow }}/enable` },
  }),
  disableWorkflow: request(
    'REPEATABLE',
    ['Switch a workflow off', 'Lets a workflow start no more.'],
    of(workflow),
    {
      ...{ method: 'PUT', path: `${ACTIONS}/{{ $input.workflow }}/disable` },
    },
  ),
}

/** GitHub's REST API: docs.github.com/en/rest. */
export const GITHUB: Connector = {
  name: 'github',
  title: 'GitHub',
  summary: 'Files, issues, pull requests and releases of repositories.',
  version: 1,
  server: 'https://api.github.com',
  signIn: ['HTTP_BEARER', 'OAUTH2'],
  setup:
    'A personal access token, for the repositories and with the permissions that the actions need (contents, issues, pull ' +
    'requests, actions). A server of your own is set as the `server` of the node: https://HOST/api/v3.',
  actions: { ...FILES_OF_GITHUB, ...ISSUES, ...PULLS, ...RELEASES, ...REPOSITORIES, ...WORKFLOWS },
}
