"""The JSON-LD context of schema.org, as far as it says anything: every other term is its own name behind :data:`VOCABULARY`.

From the context that schema.org publishes: terms of version 12.0, with those from `serviceUrl` on as of version 27.01.
"""

import re

VOCABULARY = "http://schema.org/"

#: How pages name the context.
NAME = re.compile(
    r"https?://(?:www\.)?schema\.org(?:/(?:docs/jsonldcontext\.json(?:ld)?|version/[^/]+/schemaorgcontext\.jsonld)?)?#?",
    re.IGNORECASE,
)

#: Terms that stand for something else.
ALIASES = {
    "type": "@type",
    "id": "@id",
    "HTML": "http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML",
}

PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "schema": VOCABULARY,
    "owl": "http://www.w3.org/2002/07/owl#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dct": "http://purl.org/dc/terms/",
    "dctype": "http://purl.org/dc/dcmitype/",
    "void": "http://rdfs.org/ns/void#",
    "dcat": "http://www.w3.org/ns/dcat#",
}

_LINKS = """
acquireLicensePage actionableFeedbackPolicy additionalType afterMedia beforeMedia benefitsSummaryUrl codeRepository
colleague contentUrl correctionsPolicy discussionUrl diseasePreventionInfo diseaseSpreadStatistics diversityPolicy
diversityStaffingReport documentation downloadUrl duringMedia embedUrl ethicsPolicy gameLocation gettingTestedInfo
hasMap healthPlanMarketingUrl image inCodeSet inDefinedTermSet installUrl isBasedOn isBasedOnUrl isPartOf labelDetails
layoutImage license logo mainEntityOfPage map maps masthead merchantReturnLink missionCoveragePrioritiesPolicy
newsUpdatesAndGuidelines noBylinesPolicy paymentUrl prescribingInfo productReturnLink publicTransportClosuresInfo
publishingPrinciples quarantineGuidelines relatedLink replyToUrl sameAs schoolClosuresInfo screenshot sdLicense season
serviceUrl shippingSettingsLink significantLink significantLinks speakable target targetUrl thumbnailUrl
tourBookingPage trackingUrl travelBans unnamedSourcesPolicy url usageInfo verificationFactCheckingPolicy webFeed
"""
_DATES = """
applicationDeadline applicationStartDate availabilityEnds availabilityStarts birthDate commentTime dateCreated
dateDeleted dateIssued dateModified datePosted datePublished dateRead dateVehicleFirstRegistered deathDate
dissolutionDate endDate exceptDate expectedArrivalFrom expectedArrivalUntil expires foundingDate guidelineDate
lastReviewed legislationDate legislationDateVersion modelDate orderDate paymentDueDate previousStartDate
priceValidUntil productionDate purchaseDate releaseDate scheduledPaymentDate sdDatePublished startDate uploadDate
validFrom validThrough validUntil vehicleModelDate
"""

#: Terms whose strings are links, or dates.
COERCED = dict.fromkeys(_LINKS.split(), "@id") | dict.fromkeys(_DATES.split(), f"{VOCABULARY}Date")
