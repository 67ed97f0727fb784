import type { SignInWay } from './ways.ts'

/**
 * The clients of OAuth 2 that n8n makes for one vendor each, a line for each type: how the client proves itself (header
 * or body), the authorization URL, the token URL and the scopes. The facts are those of n8n's credential files, 2.41.1.
 */
const CLIENTS = `
acuitySchedulingOAuth2Api body https://acuityscheduling.com/oauth2/authorize https://acuityscheduling.com/oauth2/token api-v1
airtableOAuth2Api header https://airtable.com/oauth2/v1/authorize https://airtable.com/oauth2/v1/token schema.bases:read data.records:read data.records:write
asanaOAuth2Api body https://app.asana.com/-/oauth_authorize https://app.asana.com/-/oauth_token
atlassianOAuth2Api header https://auth.atlassian.com/authorize?audience=api.atlassian.com&prompt=consent https://auth.atlassian.com/oauth/token
bitlyOAuth2Api body https://bitly.com/oauth/authorize https://api-ssl.bitly.com/oauth/access_token
boxOAuth2Api body https://account.box.com/api/oauth2/authorize https://api.box.com/oauth2/token
calendlyOAuth2Api header https://auth.calendly.com/oauth/authorize https://auth.calendly.com/oauth/token users:read webhooks:read webhooks:write scheduled_events:read
ciscoWebexOAuth2Api body https://webexapis.com/v1/authorize https://webexapis.com/v1/access_token spark:memberships_read meeting:recordings_read spark:kms meeting:schedules_read spark:rooms_read spark:messages_write spark:memberships_write meeting:recordings_write meeting:preferences_read spark:messages_read meeting:schedules_write
clickUpOAuth2Api body https://app.clickup.com/api https://api.clickup.com/api/v2/oauth/token
confluenceCloudOAuth2Api header https://auth.atlassian.com/authorize?audience=api.atlassian.com&prompt=consent https://auth.atlassian.com/oauth/token read:page:confluence write:page:confluence read:hierarchical-content:confluence read:space:confluence read:attachment:confluence read:comment:confluence read:label:confluence read:content-details:confluence write:attachment:confluence delete:attachment:confluence write:comment:confluence delete:comment:confluence write:label:confluence delete:page:confluence offline_access
discordOAuth2Api header https://discord.com/api/oauth2/authorize?permissions=1642758929655 https://discord.com/api/oauth2/token identify guilds guilds.join bot
driftOAuth2Api body https://dev.drift.com/authorize https://driftapi.com/oauth2/token
dropboxOAuth2Api header https://www.dropbox.com/oauth2/authorize?token_access_type=offline&force_reapprove=true https://api.dropboxapi.com/oauth2/token files.content.write files.content.read sharing.read account_info.read
eventbriteOAuth2Api body https://www.eventbrite.com/oauth/authorize https://www.eventbrite.com/oauth/token
facebookGraphApiOAuth2Api header https://www.facebook.com/v25.0/dialog/oauth https://graph.facebook.com/v25.0/oauth/access_token public_profile email pages_show_list pages_read_engagement pages_read_user_content pages_manage_metadata pages_manage_posts business_management
facebookGraphAppOAuth2Api header https://www.facebook.com/v25.0/dialog/oauth https://graph.facebook.com/v25.0/oauth/access_token public_profile email pages_show_list pages_read_engagement pages_read_user_content pages_manage_metadata pages_manage_posts business_management
facebookLeadAdsOAuth2Api header https://www.facebook.com/v17.0/dialog/oauth https://graph.facebook.com/v17.0/oauth/access_token leads_retrieval pages_show_list pages_manage_metadata pages_manage_ads business_management pages_read_engagement
figmaOAuth2Api header https://www.figma.com/oauth https://api.figma.com/v1/oauth/token webhooks:read webhooks:write
formstackOAuth2Api header https://www.formstack.com/api/v2/oauth2/authorize https://www.formstack.com/api/v2/oauth2/token
getResponseOAuth2Api header https://app.getresponse.com/oauth2_authorize.html https://api.getresponse.com/v3/token
goToWebinarOAuth2Api header https://api.getgo.com/oauth/v2/authorize https://api.getgo.com/oauth/v2/token
gongOAuth2Api header https://app.gong.io/oauth2/authorize https://app.gong.io/oauth2/generate-customer-token
gumroadOAuth2Api body https://gumroad.com/oauth/authorize https://gumroad.com/oauth/token view_sales
harvestOAuth2Api body https://id.getharvest.com/oauth2/authorize https://id.getharvest.com/api/v2/oauth2/token all
helpScoutOAuth2Api body https://secure.helpscout.net/authentication/authorizeClientApplication https://api.helpscout.net/v2/oauth2/token
highLevelOAuth2Api body https://marketplace.leadconnectorhq.com/oauth/chooselocation https://services.leadconnectorhq.com/oauth/token
hubspotDeveloperApi body https://app.hubspot.com/oauth/authorize?grant_type=authorization_code https://api.hubapi.com/oauth/v1/token crm.objects.contacts.read crm.schemas.contacts.read crm.objects.companies.read crm.schemas.companies.read crm.objects.deals.read crm.schemas.deals.read conversations.read tickets
hubspotOAuth2Api body https://app.hubspot.com/oauth/authorize?grant_type=authorization_code https://api.hubapi.com/oauth/v1/token crm.lists.write crm.objects.contacts.read crm.objects.contacts.write crm.objects.companies.read crm.objects.companies.write crm.objects.deals.read crm.objects.deals.write crm.objects.owners.read crm.schemas.companies.read crm.schemas.contacts.read crm.schemas.deals.read forms tickets
jiraSoftwareCloudOAuth2Api header https://auth.atlassian.com/authorize?audience=api.atlassian.com&prompt=consent https://auth.atlassian.com/oauth/token read:jira-user read:jira-work write:jira-work manage:jira-webhook offline_access
keapOAuth2Api body https://signin.infusionsoft.com/app/oauth/authorize https://api.infusionsoft.com/token full
linearOAuth2Api body https://linear.app/oauth/authorize https://api.linear.app/oauth/token
linkedInCommunityManagementOAuth2Api body https://www.linkedin.com/oauth/v2/authorization https://www.linkedin.com/oauth/v2/accessToken w_member_social w_organization_social r_basicprofile
linkedInOAuth2Api body https://www.linkedin.com/oauth/v2/authorization https://www.linkedin.com/oauth/v2/accessToken
mailchimpOAuth2Api body https://login.mailchimp.com/oauth2/authorize https://login.mailchimp.com/oauth2/token
mediumOAuth2Api body https://medium.com/m/oauth/authorize https://medium.com/v1/tokens basicProfile,publishPost,listPublications
miroOAuth2Api body https://miro.com/oauth/authorize https://api.miro.com/v1/oauth/token boards:read boards:write
mondayComOAuth2Api body https://auth.monday.com/oauth2/authorize https://auth.monday.com/oauth2/token boards:write boards:read
notionOAuth2Api header https://api.notion.com/v1/oauth/authorize?owner=user https://api.notion.com/v1/oauth/token
pagerDutyOAuth2Api header https://app.pagerduty.com/oauth/authorize https://app.pagerduty.com/oauth/token write
philipsHueOAuth2Api header https://api.meethue.com/v2/oauth2/authorize https://api.meethue.com/v2/oauth2/token
pipedriveOAuth2Api header https://oauth.pipedrive.com/oauth/authorize https://oauth.pipedrive.com/oauth/token
pushbulletOAuth2Api body https://www.pushbullet.com/authorize https://api.pushbullet.com/oauth2/token
quickBooksOAuth2Api header https://appcenter.intuit.com/connect/oauth2 https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer com.intuit.quickbooks.accounting
raindropOAuth2Api body https://raindrop.io/oauth/authorize https://api.raindrop.io/v1/oauth/access_token
redditOAuth2Api header https://www.reddit.com/api/v1/authorize?duration=permanent https://www.reddit.com/api/v1/access_token identity edit history mysubreddits read save submit
sentryIoOAuth2Api body https://sentry.io/oauth/authorize/ https://sentry.io/oauth/token/ event:admin event:read org:read project:read project:releases team:read event:write org:admin project:write team:write project:admin team:admin
spotifyOAuth2Api header https://accounts.spotify.com/authorize https://accounts.spotify.com/api/token user-read-playback-state playlist-read-collaborative user-modify-playback-state playlist-modify-public user-read-currently-playing playlist-read-private user-read-recently-played playlist-modify-private user-library-read user-follow-read
stravaOAuth2Api body https://www.strava.com/oauth/authorize https://www.strava.com/oauth/token activity:read_all,activity:write
surveyMonkeyOAuth2Api body https://api.surveymonkey.com/oauth/authorize https://api.surveymonkey.com/oauth/token surveys_read,collectors_read,responses_read,responses_read_detail,webhooks_write,webhooks_read
todoistOAuth2Api body https://todoist.com/oauth/authorize https://todoist.com/oauth/access_token data:read_write,data:delete
twistOAuth2Api body https://twist.com/oauth/authorize https://twist.com/oauth/access_token attachments:write,channels:remove,comments:remove,messages:remove,threads:remove,workspaces:read
twitterOAuth2Api header https://x.com/i/oauth2/authorize https://api.x.com/2/oauth2/token tweet.read users.read tweet.write tweet.moderate.write users.read follows.read follows.write offline.access like.read like.write dm.write dm.read list.read list.write
typeformOAuth2Api header https://api.typeform.com/oauth/authorize https://api.typeform.com/oauth/token webhooks:write webhooks:read forms:read
webflowOAuth2Api body https://webflow.com/oauth/authorize https://api.webflow.com/oauth/access_token
wordpressOAuth2Api body https://public-api.wordpress.com/oauth2/authorize https://public-api.wordpress.com/oauth2/token global
xeroOAuth2Api header https://login.xero.com/identity/connect/authorize https://identity.xero.com/connect/token offline_access accounting.invoices accounting.payments accounting.banktransactions accounting.manualjournals accounting.attachments accounting.settings accounting.contacts
zohoOAuth2Api body https://accounts.zoho.com/oauth/v2/auth?access_type=offline https://accounts.zoho.com/oauth/v2/token ZohoCRM.modules.ALL,ZohoCRM.settings.all,ZohoCRM.users.all
zoomOAuth2Api header https://zoom.us/oauth/authorize https://zoom.us/oauth/token
`

/** The same for Google, whose scopes begin with https://www.googleapis.com/auth/ unless they are written out. */
const OF_GOOGLE = `
gSuiteAdminOAuth2Api admin.directory.group admin.directory.user admin.directory.domain.readonly admin.directory.userschema.readonly admin.directory.device.chromeos admin.directory.orgunit.readonly
gmailOAuth2 gmail.labels gmail.addons.current.action.compose gmail.addons.current.message.action https://mail.google.com/ gmail.modify gmail.compose
googleAdsOAuth2Api adwords
googleAnalyticsOAuth2 analytics analytics.readonly
googleBigQueryOAuth2Api bigquery cloud-platform drive
googleBooksOAuth2Api books
googleBusinessProfileOAuth2Api business.manage
googleCalendarOAuth2Api calendar calendar.events
googleChatOAuth2Api chat.spaces chat.messages chat.memberships
googleCloudNaturalLanguageOAuth2Api cloud-language cloud-platform
googleCloudStorageOAuth2Api cloud-platform cloud-platform.read-only devstorage.full_control devstorage.read_only devstorage.read_write
googleContactsOAuth2Api contacts
googleDocsOAuth2Api documents drive drive.file
googleDriveOAuth2Api drive drive.appdata drive.photos.readonly
googleFirebaseCloudFirestoreOAuth2Api datastore firebase
googleFirebaseRealtimeDatabaseOAuth2Api userinfo.email firebase.database firebase
googleOAuth2Api
googlePerspectiveOAuth2Api userinfo.email
googleSheetsOAuth2Api drive.file spreadsheets drive.metadata
googleSheetsTriggerOAuth2Api drive drive.file spreadsheets drive.metadata
googleSlidesOAuth2Api drive.file presentations
googleTasksOAuth2Api tasks
googleTranslateOAuth2Api cloud-translation
youTubeOAuth2Api youtube youtubepartner youtube.force-ssl youtube.upload youtubepartner-channel-audit
`

const OF_MICROSOFT = `
azureStorageOAuth2Api https://storage.azure.com/.default
microsoftDynamicsOAuth2Api openid offline_access https://{subdomain}.{region}/.default
microsoftEntraOAuth2Api openid offline_access AccessReview.ReadWrite.All Directory.ReadWrite.All NetworkAccessPolicy.ReadWrite.All DelegatedAdminRelationship.ReadWrite.All EntitlementManagement.ReadWrite.All User.ReadWrite.All Directory.AccessAsUser.All Sites.FullControl.All GroupMember.ReadWrite.All
microsoftExcelOAuth2Api openid offline_access Files.ReadWrite
microsoftGraphSecurityOAuth2Api SecurityEvents.ReadWrite.All offline_access
microsoftOAuth2Api
microsoftOneDriveOAuth2Api openid offline_access Files.ReadWrite.All
microsoftOutlookOAuth2Api openid offline_access Contacts.Read Contacts.ReadWrite Calendars.Read Calendars.Read.Shared Calendars.ReadWrite Mail.ReadWrite Mail.ReadWrite.Shared Mail.Send Mail.Send.Shared MailboxSettings.Read
microsoftSharePointOAuth2Api openid offline_access https://{subdomain}.sharepoint.com/.default
microsoftTeamsOAuth2Api openid offline_access User.Read.All Group.ReadWrite.All Chat.ReadWrite ChannelMessage.Read.All OnlineMeetings.ReadWrite ChannelMessage.ReadWrite TeamworkTag.Read
microsoftToDoOAuth2Api openid offline_access Tasks.ReadWrite
`

/** Types whose addresses depend on the account, or are entered by the user. */
const OF_ACCOUNTS = [
  ...['oAuth2Api', 'mcpOAuth2Api', 'githubOAuth2Api', 'gitlabOAuth2Api', 'gristOAuth2Api', 'mauticOAuth2Api'],
  ...['azureEntraCognitiveServicesOAuth2Api', 'databricksOAuth2Api', 'microsoftAzureMonitorOAuth2Api'],
  ...['microsoftDataverseOAuth2Api', 'nextCloudOAuth2Api', 'salesforceOAuth2Api', 'serviceNowOAuth2Api'],
  ...['snowflakeOAuth2Api', 'zendeskOAuth2Api'],
]

const GOOGLE = {
  authorizationUrl: 'https://accounts.google.com/o/oauth2/v2/auth?access_type=offline&prompt=consent',
  tokenUrl: 'https://oauth2.googleapis.com/token',
  authentication: 'body',
}
const MICROSOFT = {
  authorizationUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
  tokenUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
  authentication: 'body',
}

const ENTER = 'clientId and clientSecret: those of your client there; then connect it'
const BY_TOKEN = ['OAUTH2', 'HTTP_BEARER', 'HTTP_HEADER'] as const

/** Types of n8n by which a person agrees in a browser, or a client gets tokens. */
export const OAUTH_SIGN_INS: Record<string, SignInWay> = Object.fromEntries([
  ...OF_ACCOUNTS.map((type) => [
    type,
    { types: BY_TOKEN, enter: `authorizationUrl, tokenUrl and scope as in n8n; ${ENTER}` },
  ]),
  ...readLines(CLIENTS).map(([type, authentication, authorizationUrl, tokenUrl, ...scopes]) =>
    makeClient(
      type!,
      { authorizationUrl: authorizationUrl!, tokenUrl: tokenUrl!, authentication: authentication! },
      scopes,
    ),
  ),
  ...readLines(OF_MICROSOFT).map(([type, ...scopes]) => makeClient(type!, MICROSOFT, scopes)),
  ...readLines(OF_GOOGLE).map(([type, ...short]) => {
    const scopes = short.map((one) => (one.includes('/') ? one : `https://www.googleapis.com/auth/${one}`))
    const [, client] = makeClient(type!, GOOGLE, scopes)
    return [type, { ...client, types: [...BY_TOKEN, 'GOOGLE_SERVICE_ACCOUNT'] }]
  }),
])

function readLines(table: string): string[][] {
  return table
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
}

function makeClient(type: string, urls: Record<string, string>, scopes: string[]): [string, SignInWay] {
  const scope = scopes.join(' ')
  const enter = scope === '' ? `scope as in n8n; ${ENTER}` : ENTER
  return [type, { types: BY_TOKEN, data: { ...urls, ...(scope === '' ? {} : { scope }) }, enter }]
}
